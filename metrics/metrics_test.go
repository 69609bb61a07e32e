package metrics

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/volume"
	"tessera/morph"
)

func TestReconstructionErrorsOfKnownValues(t *testing.T) {
	x, y := []float32{0, 1, 0.5, 0.25}, []float32{-1, 3, 0.5, 0.75}
	got, err := MSE(x, y)
	if err != nil || got != (1+4+0+0.25)/4 {
		t.Errorf("mse %g %v", got, err)
	}
	got, err = ClippedMSE(x, y)
	if err != nil || got != 0.25/4 {
		t.Errorf("clipped mse %g %v", got, err)
	}
	if _, err = MSE(x, y[:3]); err == nil {
		t.Error("different lengths were accepted")
	}
	if got, _ = ClippedMSE([]float32{0}, []float32{float32(math.NaN())}); !math.IsNaN(got) {
		t.Errorf("NaN clipped to %g", got)
	}
}

func TestMSEOfManyValuesEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := uniform(r, 100_001), normal(r, 100_001)
	var plain, clipped float64
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		plain += d * d / float64(len(x))
		d = float64(x[i]) - math.Max(0, math.Min(1, float64(y[i])))
		clipped += d * d / float64(len(x))
	}
	got, _ := MSE(x, y)
	close6(t, "mse", got, plain)
	got, _ = ClippedMSE(x, y)
	close6(t, "clipped", got, clipped)
}

func TestHoyerLaws(t *testing.T) {
	one := make([]float32, 100)
	one[17] = -3
	equal := make([]float32, 100)
	for i := range equal {
		equal[i] = 0.2
	}
	for name, c := range map[string]struct {
		v    []float32
		want float64
	}{
		"one value left":    {one, 1},
		"all equal":         {equal, 0},
		"all zero":          {make([]float32, 100), 0},
		"a single value":    {[]float32{4}, 0},
		"no value":          {nil, 0},
		"two of four equal": {[]float32{1, 0, -1, 0}, 2 - math.Sqrt2},
	} {
		if got := Hoyer(c.v); math.Abs(got-c.want) > 2e-7 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		v := normal(r, 30)
		scaled := slices.Clone(v)
		for i := range scaled {
			scaled[i] *= -7
		}
		if a, b := Hoyer(v), Hoyer(scaled); math.Abs(a-b) > 1e-6 || a < 0 || a > 1 {
			t.Fatalf("sparsity %g, of the scaled vector %g", a, b)
		}
	}
}

func TestMeanHoyerCountsAllZeroRowsAsZero(t *testing.T) {
	got, err := MeanHoyer([]float32{0, 0, 0, 0, 5, 0}, 2)
	if err != nil || math.Abs(got-1.0/3) > 1e-6 {
		t.Errorf("got %g %v, want 1/3", got, err)
	}
	if _, err := MeanHoyer(make([]float32, 5), 2); err == nil {
		t.Error("half a row was accepted")
	}
}

func TestKLEqualsItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	const n, units, p = 50, 6, 0.05
	codes := uniform(r, n*units)
	want := 0.0
	for j := range units {
		mean := 0.0
		for i := range n {
			mean += float64(codes[i*units+j]) / n
		}
		want += p*math.Log(p/mean) + (1-p)*math.Log((1-p)/(1-mean))
	}
	got, ok, err := KL(codes, units, p)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	close6(t, "kl", got, want)
}

func TestKLIsFiniteAtTheEdgesAndAbsentOutside(t *testing.T) {
	got, ok, err := KL([]float32{0, 1, 0, 1}, 2, 0.01)
	want := 0.01*math.Log(0.01/1e-7) + 0.99*math.Log(0.99/(1-1e-7)) + 0.01*math.Log(0.01/(1-1e-7)) + 0.99*math.Log(0.99/1e-7)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	close6(t, "kl", got, want)
	for _, v := range []float32{-1e-6, 1.0001, float32(math.NaN())} {
		if _, ok, err := KL([]float32{0.5, v}, 2, 0.01); ok || err != nil {
			t.Errorf("code %g: ok %t, error %v", v, ok, err)
		}
	}
	if got, ok, _ := KL([]float32{0.25, 0.25}, 1, 0.25); !ok || math.Abs(got) > 1e-12 {
		t.Errorf("at its target the divergence is %g", got)
	}
}

func TestDeadUnitsAreThoseBelowOnePercentOfTheGreatest(t *testing.T) {
	for name, c := range map[string]struct {
		codes []float32
		units int
		want  []int
	}{
		"below, at and above": {[]float32{100, 0.5, 0, 0, 0.9, 1}, 3, []int{1}},
		"all zero":            {make([]float32, 6), 3, []int{0, 1, 2}},
		"negative only":       {[]float32{5, -5, 5, -5}, 2, []int{1}},
		"none dead":           {[]float32{1, 0, 0, 2}, 2, nil},
	} {
		got, err := DeadUnits(c.codes, c.units)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
}

func TestUsedUnitsAreThoseAboveTheMean(t *testing.T) {
	got, err := UsedUnits([]float32{0.25, 0.5, 0, 0.25, 0.25, 0.75}, 3, 0.25)
	if err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("got %v %v", got, err)
	}
}

func TestNegativeWeightsLeaveTheBiasOut(t *testing.T) {
	c := &affine{atoms: &Atoms{Shape: []int{1, 2}, Count: 2, Values: []float32{-1, 0, 2, -0.1}, Bias: []float32{-1, -1}}}
	if got := NegativeWeights(LastWeight(c)); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

func TestPartsAreFoundAsAtomsOrAsTheBias(t *testing.T) {
	atoms := &Atoms{Shape: []int{2, 2}, Count: 2, Values: []float32{2, 2, 0, 0, 0, 0, 1, 0.5}, Bias: []float32{0, 3, 0, 3}}
	parts := [][]float32{{1, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 0, 0}}
	got, err := PartsRecovered(parts, atoms, 0.96)
	if err != nil {
		t.Fatal(err)
	}
	want := []Part{{0, 1, true}, {BiasAtom, 1, true}, {1, 1.5 / math.Sqrt(2*1.25), false}, {0, 1 / math.Sqrt2, false}, {0, 0, false}}
	for i := range want {
		if got[i].Atom != want[i].Atom || got[i].Found != want[i].Found || math.Abs(got[i].Cosine-want[i].Cosine) > 1e-12 {
			t.Errorf("part %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if _, err := PartsRecovered([][]float32{{1}}, atoms, 0.9); err == nil {
		t.Error("a part of another size was accepted")
	}
}

// Against the formula, every operator and convention, by loops that share nothing with the code but morph (which has
// oracles of its own).
func TestMaxApproximationEqualsItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	c := newAffine(r, []int{6, 5}, 4)
	images := uniform(r, 23*30)
	codes, _ := c.Encode(images)
	reconstructions, _ := c.Decode(codes)
	for _, op := range []morph.Operator{morph.Dilation, morph.Erosion, morph.Opening, morph.Closing} {
		for flags := range 8 {
			m := MaxApproximation{op, 1 + flags%2, flags&1 != 0, flags&2 != 0, flags&4 != 0}
			got, err := m.Measure(c, images)
			if err != nil {
				t.Fatal(err)
			}
			close6(t, string(op), got, plainMaxApproximation(t, m, c, images, codes, reconstructions))
		}
	}
}

func plainMaxApproximation(t *testing.T, m MaxApproximation, c *affine, images, codes, reconstructions []float32) float64 {
	t.Helper()
	psi := func(v []float32) []float32 {
		out, err := morph.Apply(m.Operator, m.Radius, v, c.shape)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	atoms, bias, target := psi(c.atoms.Values), c.atoms.Bias, psi(images)
	if m.OperateBias {
		bias = psi(bias)
	}
	if m.Reconstructions {
		target = psi(reconstructions)
	}
	pixels, sum := volume.Of(c.shape), 0.0
	for i := range target {
		var y float32
		for j := range c.units {
			y += codes[i/pixels*c.units+j] * atoms[j*pixels+i%pixels]
		}
		if y += bias[i%pixels]; y < 0 {
			y *= 0.1
		}
		d := float64(y)
		if m.Clip {
			d = math.Max(0, math.Min(1, d))
		}
		d -= float64(target[i])
		sum += d * d
	}
	return sum / float64(len(target))
}

// One-hot codes, atoms of disjoint and distant support, a zero bias: dilating the atoms is dilating the images.
func TestMaxApproximationIsExactForDisjointAtoms(t *testing.T) {
	shape := []int{9, 9}
	atoms := &Atoms{Shape: shape, Count: 2, Values: make([]float32, 2*81)}
	atoms.Values[2*9+2], atoms.Values[2*9+3], atoms.Values[81+6*9+6] = 1, 0.5, 1
	c := &affine{shape: shape, units: 2, encoder: make([]float32, 2*81), offset: make([]float32, 2), atoms: atoms}
	c.encoder[(2*9+2)*2], c.encoder[(6*9+6)*2+1] = 1, 1
	images := make([]float32, 81)
	for i := range images {
		images[i] = 0.7*atoms.Values[i] + 0.4*atoms.Values[81+i]
	}
	got, err := MaxApproximation{Operator: morph.Dilation, Radius: 1}.Measure(c, images)
	if err != nil || got > 1e-14 {
		t.Errorf("error %g %v, want 0", got, err)
	}
}

func TestMaxApproximationNeedsAtoms(t *testing.T) {
	c := newAffine(rand.New(rand.NewPCG(5, 2)), []int{3, 3}, 2)
	c.hidden = true
	if _, err := (MaxApproximation{Operator: morph.Dilation, Radius: 1}).Measure(c, make([]float32, 9)); !errors.Is(err, ErrNoAtoms) {
		t.Errorf("error %v, want ErrNoAtoms", err)
	}
}
