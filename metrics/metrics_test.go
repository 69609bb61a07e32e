package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// added returns the values of a metric on these batches, without a coder.
func added(t *testing.T, m Metric, s Subject, batches ...Batch) Values {
	t.Helper()
	meter, err := m.Start(&s)
	fatal.If(t, err)
	for i := range batches {
		fatal.If(t, meter.Add(&batches[i]))
	}
	values, err := meter.Values(context.Background())
	fatal.If(t, err)
	for i, one := range m.Describe().Measures {
		values[i].Name = one.Name
	}
	return values
}

func TestReconstructionErrorsOfKnownValues(t *testing.T) {
	b := Batch{Images: []float32{0, 1, 0.5, 0.25}, Outputs: []float32{-1, 3, 0.5, 0.75}}
	s := Subject{Shape: []int{1, 2}}
	for name, c := range map[string]struct {
		m    Metric
		want float64
	}{"mse": {&MSE{}, (1 + 4 + 0 + 0.25) / 4}, "mse, single": {&MSE{Single: true}, (1 + 4 + 0 + 0.25) / 4}, "clipped": {metricOf("mse_clipped"), 0.25 / 4}} {
		expect.Equal(t, added(t, c.m, s, b, b)[0].Number, c.want, name)
	}
	b = Batch{Images: []float32{0, 0}, Outputs: []float32{float32(math.NaN()), 0}}
	if got := added(t, metricOf("mse_clipped"), s, b); !math.IsNaN(got[0].Number) {
		t.Errorf("NaN clipped to %g", got[0].Number)
	}
}

func TestMSEOfManyValuesEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := uniform(r, 100_000), normal(r, 100_000)
	var plain, clipped float64
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		plain += d * d / float64(len(x))
		d = float64(x[i]) - math.Max(0, math.Min(1, float64(y[i])))
		clipped += d * d / float64(len(x))
	}
	s, first, second := Subject{Shape: []int{10, 10}}, Batch{Images: x[:70_000], Outputs: y[:70_000]}, Batch{Images: x[70_000:], Outputs: y[70_000:]}
	close6(t, "mse", added(t, &MSE{}, s, first, second)[0].Number, plain)
	close6(t, "clipped", added(t, metricOf("mse_clipped"), s, first, second)[0].Number, clipped)
	expect.Near(t, added(t, &MSE{Single: true}, s, first, second)[0].Number, plain, 1e-6*plain, "in float32")
}

func TestHoyerLaws(t *testing.T) {
	one := make([]float32, 100)
	one[17] = -3
	equal := lists.Of(100, func(int) float32 { return 0.2 })
	for name, c := range map[string]struct {
		v    []float32
		want float64
	}{
		"one value left":    {one, 1},
		"all equal":         {equal, 0},
		"all zero":          {make([]float32, 100), 0},
		"a single value":    {[]float32{4}, 0},
		"no value":          {nil, 0},
		"denormal, one":     {[]float32{0, 0, 1e-42, 0}, 1},
		"denormal, equal":   {[]float32{1e-42, 1e-42, 1e-42, 1e-42}, 0},
		"denormal, two":     {[]float32{1e-40, 0, -1e-40, 0}, 2 - math.Sqrt2},
		"two of four equal": {[]float32{1, 0, -1, 0}, 2 - math.Sqrt2},
	} {
		expect.Near(t, Hoyer(c.v), c.want, 2e-7, name)
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
	expect.AnyError(t, expect.Err(MeanHoyer(make([]float32, 5), 2)), "half a row was accepted")
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
	s := Subject{Units: units, Known: map[string]float64{"kl.target": 0.3}}
	close6(t, "kl", added(t, &KL{Target: p}, s, Batch{Codes: codes[:12]}, Batch{Codes: codes[12:]})[0].Number, want)
	if known, given := added(t, &KL{}, s, Batch{Codes: codes}), added(t, &KL{Target: 0.3}, s, Batch{Codes: codes}); known[0] != given[0] {
		t.Errorf("the model's target gives %v, given it is %v", known, given)
	}
}

func TestKLIsFiniteAtTheEdgesAndAbsentOutside(t *testing.T) {
	want := 0.01*math.Log(0.01/1e-7) + 0.99*math.Log(0.99/(1-1e-7)) + 0.01*math.Log(0.01/(1-1e-7)) + 0.99*math.Log(0.99/1e-7)
	kl := func(units int, target float64, codes ...float32) Value {
		return added(t, &KL{Target: target}, Subject{Units: units}, Batch{Codes: codes})[0]
	}
	close6(t, "kl", kl(2, 0, 0, 1, 0, 1).Number, want)
	for _, v := range []float32{-1e-6, 1.0001, float32(math.NaN())} {
		if got := kl(2, 0, 0.5, v); got.Missing == "" {
			t.Errorf("code %g: %v", v, got)
		}
	}
	if got := kl(1, 0.25, 0.25, 0.25); got.Missing != "" || math.Abs(got.Number) > 1e-12 {
		t.Errorf("at its target the divergence is %v", got)
	}
}

func TestDeadUnitsAreThoseBelowOnePercentOfTheGreatest(t *testing.T) {
	for name, c := range map[string]struct {
		codes []float32
		units int
		want  float64
	}{
		"below, at and above": {[]float32{100, 0.5, 0, 0, 0.9, 1}, 3, 1},
		"all zero":            {make([]float32, 6), 3, 3},
		"negative only":       {[]float32{5, -5, 5, -5}, 2, 1},
		"none dead":           {[]float32{1, 0, 0, 2}, 2, 0},
	} {
		got := added(t, metricOf("dead_units"), Subject{Units: c.units}, Batch{Codes: c.codes[:c.units]}, Batch{Codes: c.codes[c.units:]})
		expect.Equal(t, got[0].Number, c.want, name, got)
	}
}

func TestUsedUnitsAreThoseAboveTheMean(t *testing.T) {
	got := added(t, &UsedUnits{Threshold: 0.25}, Subject{Units: 3}, Batch{Codes: []float32{0.25, 0.5, 0, 0.25, 0.25, 0.75}})
	expect.Equal(t, got[0].Number, 2, got)
}

func TestNegativeWeightsLeaveTheBiasOut(t *testing.T) {
	c := &affine{atoms: &Atoms{Shape: []int{1, 2}, Count: 2, Values: []float32{-1, 0, 2, -0.1}, Bias: []float32{-1, -1}}}
	expect.Equal(t, NegativeWeights(LastWeight(c)), 2)
}

// One atom equals the first two parts but is matched with only one of them. The last part has no match.
func TestPartsAreFoundAsAtomsOrAsTheBias(t *testing.T) {
	atoms := &Atoms{Shape: []int{2, 2}, Count: 2, Values: []float32{2, 2, 0, 0, 0, 0, 1, 0.5}, Bias: []float32{0, 3, 0, 3}}
	parts := [][]float32{{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 0, 0, 0}}
	got, err := PartsRecovered(parts, atoms, 0.96)
	fatal.If(t, err)
	want := []Part{{NoAtom, 0, false}, {0, 1, true}, {BiasAtom, 1, true}, {1, 1.5 / math.Sqrt(2*1.25), false}, {NoAtom, 0, false}}
	for i := range want {
		if got[i].Atom != want[i].Atom || got[i].Found != want[i].Found || math.Abs(got[i].Cosine-want[i].Cosine) > 1e-12 {
			t.Errorf("part %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	expect.AnyError(t, expect.Err(PartsRecovered([][]float32{{1}}, atoms, 0.9)), "a part of another size was accepted")
}

// The expected values are computed from the formula for every operator and convention, by loops that share only package morph
// with the code. Package morph has separate oracles.
func TestMaxApproximationEqualsItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, shape := range [][]int{{6, 5}, {6, 5, 2}} {
		c := newAffine(r, shape, 4)
		images := uniform(r, 23*volume.Of(shape))
		for _, op := range []morph.Operator{"", morph.Dilation, morph.Erosion, morph.Opening, morph.Closing} {
			for radius := range 4 {
				m := Morphology{Operator: op, Radius: radius, Element: []morph.Element{"", morph.Square, morph.Row, "011 010 000"}[radius]}
				got := measured(t, c, images, Choice{Metric: &MaxApprox{m}})
				m = m.orDefault()
				close6(t, "max_approx", number(t, got, "max_approx"), plainMaxApproximation(t, c, m, images, convention{}))
				close6(t, "clipped", number(t, got, "max_approx_clipped"), plainMaxApproximation(t, c, m, images, convention{clip: true}))
				close6(t, "bias dilated", number(t, got, "max_approx_bias_dilated"), plainMaxApproximation(t, c, m, images, convention{bias: true}))
				close6(t, "reconstructed", number(t, got, "max_approx_reconstructed"), plainMaxApproximation(t, c, m, images, convention{reconstructed: true}))
			}
		}
	}
}

// convention is a convention of the study for max-approximation.
type convention struct{ bias, clip, reconstructed bool }

func plainMaxApproximation(t *testing.T, c *affine, m Morphology, images []float32, by convention) float64 {
	t.Helper()
	codes, _ := c.Encode(images)
	reconstructions, _ := c.Decode(codes)
	psi := func(v []float32) []float32 {
		out, err := morph.Apply(m.Operator, m.Element, m.Radius, v, c.shape)
		fatal.If(t, err)
		return out
	}
	atoms, bias, target := psi(c.atoms.Values), c.atoms.Bias, psi(images)
	if by.bias {
		bias = psi(bias)
	}
	if by.reconstructed {
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
		if by.clip {
			d = math.Max(0, math.Min(1, d))
		}
		d -= float64(target[i])
		sum += d * d
	}
	return sum / float64(len(target))
}

// With one-hot codes, a zero bias, and atoms whose supports are disjoint and distant, dilating the atoms equals dilating the
// images.
func TestMaxApproximationIsExactForDisjointAtoms(t *testing.T) {
	shape := []int{9, 9}
	atoms := &Atoms{Shape: shape, Count: 2, Values: make([]float32, 2*81)}
	atoms.Values[2*9+2], atoms.Values[2*9+3], atoms.Values[81+6*9+6] = 1, 0.5, 1
	c := &affine{shape: shape, units: 2, encoder: make([]float32, 2*81), offset: make([]float32, 2), atoms: atoms}
	c.encoder[(2*9+2)*2], c.encoder[(6*9+6)*2+1] = 1, 1
	images := lists.Of(81, func(i int) float32 { return 0.7*atoms.Values[i] + 0.4*atoms.Values[81+i] })
	if got := number(t, measured(t, c, images), "max_approx"); got > 1e-14 {
		t.Errorf("error %g, want 0", got)
	}
}

func TestMaxApproximationNeedsAtoms(t *testing.T) {
	c := newAffine(rand.New(rand.NewPCG(5, 2)), []int{3, 3}, 2)
	c.hidden = true
	expect.Is(t, expect.Err(Dilation().Coder(c, false)), ErrNoAtoms)
	for _, v := range measured(t, c, make([]float32, 9), Choice{Metric: &MaxApprox{}}).Values {
		expect.Equal(t, v.Missing, "the decoder's last layer has no atoms", v)
	}
}

// The sparsity of equal values is 0 for values of any size.
func TestHoyerOfSmallEqualValuesIsZero(t *testing.T) {
	for _, size := range []float32{1e-6, 1e-8, 1e-9, 1e-12} {
		if got := Hoyer(slices.Repeat([]float32{size}, 784)); got > 1e-6 {
			t.Errorf("784 values of %v: got %v, want 0", size, got)
		}
	}
}
