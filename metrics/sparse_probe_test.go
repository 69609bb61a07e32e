package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// probed returns the values of the metric for codes with labels.
func probed(t *testing.T, m *SparseProbe, units int, codes []float32, labels []int) []Value {
	t.Helper()
	meter, err := m.Start(&Subject{Units: units, Seed: 5})
	fatal.If(t, err)
	fatal.If(t, meter.Add(&Batch{Codes: codes, Labels: labels}))
	values, err := meter.Values(context.Background())
	fatal.If(t, err)
	return values
}

// Unit j fires for class j, and class 3 needs two units: 0.5 of it is recognised by one of them.
func TestSparseProbesFindTheUnitsOfClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const units = 8
	var codes []float32
	var labels []int
	for i := range 800 {
		code := lists.Of(units, func(j int) float32 { return float32(0.01 * r.Float64()) })
		class := i % 4
		if unit := class; class < 3 {
			code[unit] = 1
		} else {
			code[3+i/4%2] = 1
		}
		codes, labels = append(codes, code...), append(labels, class)
	}
	one, two := probed(t, &SparseProbe{K: 1}, units, codes, labels), probed(t, &SparseProbe{K: 2}, units, codes, labels)
	if least := one[1].Number; math.Abs(least-0.75) > 0.05 || math.Abs(one[0].Number-(3+least)/4) > 1e-12 {
		t.Errorf("with one unit: got %v, want 1 for three classes, and about 0.75 for that of two units", one)
	}
	expect.Equal(t, two[0].Number, 1, "with two units", two)
	expect.Equal(t, two[1].Number, 1, "with two units", two)
}

// The values are those of plain loops: means, and Newton's method for the objective of a logistic regression of one unit.
func TestSparseProbesEqualPlainLoops(t *testing.T) {
	codes, labels := clouds(rand.New(rand.NewPCG(4, 4)), 600, 5, 3)
	p, err := fit.Of("sparse_probe", codes, 5, labels)
	fatal.If(t, err)
	want, classes := 0.0, len(p.Classes)
	for split := range holdouts {
		fitted, held, err := p.Split(heldOut, random.Stream(5, "svm/holdout", uint64(split)))
		fatal.If(t, err)
		train, test := p.Subset(fitted), p.Subset(held)
		train.Scale(test)
		for class := range classes {
			members, others := membersOf(train, class)
			random.Stream(5, "sparse_probe", uint64(split*classes+class)).Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			others = others[:len(members)]
			unit, largest := 0, -1.0
			for j := range 5 {
				difference := 0.0
				for i := range members {
					difference += (train.Row(members[i])[j] - train.Row(others[i])[j]) / float64(len(members))
				}
				if math.Abs(difference) > largest {
					unit, largest = j, math.Abs(difference)
				}
			}
			slope, bias := newton(train, append(members, others...), class, unit)
			right, all := [2]float64{}, [2]float64{}
			for i, label := range test.Labels {
				of := 0
				if label == class {
					of = 1
				}
				all[of]++
				if (slope*test.Row(i)[unit]+bias > 0) == (of == 1) {
					right[of]++
				}
			}
			want += (right[0]/all[0] + right[1]/all[1]) / 2 / float64(holdouts*classes)
		}
	}
	if got := probed(t, &SparseProbe{K: 1}, 5, codes, labels)[0].Number; math.Abs(got-want) > 1e-12 || got < 0.5 || got == 1 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// newton returns the slope and the bias of the logistic regression of one unit. With one weight w for each of two classes, |W|²/2 is s²/4, s the
// difference of the weights.
func newton(p *fit.Labelled, rows []int, class, unit int) (s, b float64) {
	for range 100 {
		ds, db, ss, sb, bb := s/2, 0.0, 0.5, 0.0, 0.0
		for _, i := range rows {
			x, y := p.Row(i)[unit], 0.0
			if p.Labels[i] == class {
				y = 1
			}
			q := 1 / (1 + math.Exp(-s*x-b))
			ds, db = ds+(q-y)*x, db+q-y
			ss, sb, bb = ss+q*(1-q)*x*x, sb+q*(1-q)*x, bb+q*(1-q)
		}
		det := ss*bb - sb*sb
		s, b = s-(bb*ds-sb*db)/det, b-(ss*db-sb*ds)/det
	}
	return s, b
}

// Two classes have the same probe, whichever is the larger one.
func TestSparseProbesAreBalanced(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var codes []float32
	var labels []int
	for i := range 2000 {
		class := max(0, i%10-8) // a tenth are 1
		codes, labels = append(codes, float32(r.NormFloat64()+2*float64(class)), float32(r.NormFloat64())), append(labels, class)
	}
	of := probed(t, &SparseProbe{}, 2, codes, labels)
	if of[0].Number < 0.8 || of[0].Number-of[1].Number > 0.03 {
		t.Errorf("got %v, want both classes recognised by their distance of 2 standard deviations, 0.84", of)
	}
}

func TestSparseProbesOfAClassThatIsNeverHeldOutHaveNoValue(t *testing.T) {
	codes, labels := clouds(rand.New(rand.NewPCG(4, 4)), 300, 3, 2)
	labels[0], labels[1] = 2, 2
	meter, err := (&SparseProbe{}).Start(&Subject{Units: 3, Seed: 5})
	fatal.If(t, err)
	fatal.If(t, meter.Add(&Batch{Codes: codes, Labels: labels}))
	_, err = meter.Values(context.Background())
	expect.Error(t, err, "a class is too small: no sample of class 2")
}
