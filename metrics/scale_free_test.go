package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// line returns a model of two pixels and two units with the given atoms and bias.
func line(activation string, bias []float32, atoms ...[]float32) *listed {
	return &listed{scipyModel: &scipyModel{Activation: activation, Shape: []int{1, 2}, Units: 2, Atoms: atoms, Bias: bias}}
}

// lost returns additivity_lost for one code.
func lost(t *testing.T, c *listed, code ...float32) float64 {
	t.Helper()
	outputs, err := c.Decode(code)
	fatal.If(t, err)
	s := Subject{Coder: c, Shape: c.Shape(), Units: 2, Atoms: c.Atoms()}
	return added(t, metricOf("additivity"), s, Batch{Codes: code, Outputs: outputs})[0].Number
}

func TestAdditivityLostCountsWhatBiasAndOtherAtomsTakeAway(t *testing.T) {
	parts := [][]float32{{1, 0}, {0.5, 1}}
	cancelling := [][]float32{{1, 1}, {-0.5, 0}}
	for name, c := range map[string]struct {
		model *listed
		code  []float32
		want  float64
	}{
		"a sum of parts":                         {line("linear", []float32{0, 0}, parts...), []float32{1, 2}, 0},
		"with a positive bias":                   {line("relu", []float32{0.3, 5}, parts...), []float32{1, 2}, 0},
		"a negative bias takes away":             {line("relu", []float32{-0.5, 0}, parts...), []float32{1, 2}, 0.5 / 4},
		"more than there is":                     {line("relu", []float32{-9, 0}, parts...), []float32{1, 2}, 2.0 / 4},
		"another atom takes away":                {line("linear", []float32{0, 0}, cancelling...), []float32{1, 1}, 0.5 / 2},
		"a positive bias does not hide it":       {line("linear", []float32{0.5, 0}, cancelling...), []float32{1, 1}, 0.5 / 2},
		"nor does a gain of another pixel":       {line("linear", []float32{0, 9}, cancelling...), []float32{1, 1}, 0.5 / 2},
		"negative codes of negative atoms add":   {line("linear", []float32{0, 0}, []float32{-1, 0}, []float32{0, -1}), []float32{-1, -1}, 0},
		"a sigmoid saturates":                    {line("sigmoid", []float32{0, 0}, []float32{1, 0}, []float32{0, 0}), []float32{40, 1}, 39.5 / 40},
		"nothing is added, nothing can be taken": {line("relu", []float32{-1, 1}, parts...), []float32{0, 0}, 0},
	} {
		expect.Near(t, lost(t, c.model, c.code...), c.want, 1e-6, name)
	}
}

func TestContributionsNeedCodesThatWeighAtoms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"hoyer_contribution", "l0", "dead_units_contribution", "additivity_lost", "useful_units",
		"jaccard", "hoyer_atoms_dilated"} {
		c := newAffine(r, []int{4, 4}, 3)
		c.atoms.Indirect = "a maximum"
		expect.Equal(t, measured(t, c, uniform(r, 32), selected(t, name)...).Values[0].Missing, "a maximum", name)
	}
}

// The first model needs all of its units, the second model none.
func TestUsefulUnitsOfTheExtremes(t *testing.T) {
	images := []float32{1, 0, 0, 1, 1, 1, 0, 0}
	m := line("linear", []float32{0, 0}, []float32{1, 0}, []float32{0, 1})
	m.Codes = [][]float32{{1, 0}, {0, 1}, {1, 1}, {0, 0}}
	expect.Equal(t, number(t, measured(t, m, images, selected(t, "useful_units")...), "useful_units"), 2, "a perfect code of independent pixels has")
	m.next, m.Codes = 0, [][]float32{{1, 1}, {1, 1}, {1, 1}, {1, 1}}
	expect.Equal(t, number(t, measured(t, m, images, selected(t, "useful_units")...), "useful_units"), 0, "a constant code has")
}

// At most 2000 images are measured: of 4001 images, every third one. Only the images in between would need the second unit.
func TestUsefulUnitsAreOfEvenlySpacedImages(t *testing.T) {
	const n = 4001
	m := line("linear", []float32{0, 0}, []float32{1, 0}, []float32{0, 1})
	var images []float32
	for i := range n {
		code := []float32{float32(i % 2), 0}
		if i%3 != 0 {
			code[1] = float32(i % 5)
		}
		m.Codes, images = append(m.Codes, code), append(images, code...)
	}
	expect.Equal(t, number(t, measured(t, m, images, selected(t, "useful_units")...), "useful_units"), 1)
}

// The model has more atoms than the metric compares at a time, and one zero atom.
func TestCoherenceOfManyAtomsEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	const k, pixels = 150, 9
	a := &Atoms{Shape: []int{pixels}, Count: k, Values: normal(r, k*pixels)}
	clear(a.row(70))
	most, sum := 0.0, 0.0
	for i := range k {
		for j := range i {
			c := math.Abs(vectors.Cosine(a.row(i), a.row(j)))
			most, sum = max(most, c), sum+c
		}
	}
	got := added(t, metricOf("coherence"), Subject{Atoms: a})
	close6(t, "coherence", got[0].Number, most)
	close6(t, "mean", got[1].Number, sum/((k-1)*(k-2)/2))
}

func TestUsefulUnitsOfTooManyUnitsAreNotMeasured(t *testing.T) {
	const k = usefulMost + 1
	s := Subject{Shape: []int{1}, Units: k, Atoms: &Atoms{Shape: []int{1}, Count: k, Values: make([]float32, k)}}
	expect.Equal(t, added(t, &UsefulUnits{}, s)[0].Missing, "there are more than 4096 units")
}

func TestClassesAreNeeded(t *testing.T) {
	for _, m := range []Metric{&KNN{}, &KMeans{}} {
		s := Subject{Units: 1, Atoms: &Atoms{Shape: []int{1}, Count: 1, Values: []float32{1}}}
		for name, labels := range map[string][]int{"no label": {-1, -1}, "one class": {2, 2}} {
			meter, err := m.Start(&s)
			if err == nil {
				err = meter.Add(&Batch{Codes: []float32{1, 2}, Labels: labels})
			}
			fatal.If(t, err)
			expect.As[*data.Error](t, expect.Err(meter.Values(context.Background())), "", m, name)
		}
	}
}

func TestCodesThatAreNotFiniteAreNotClassified(t *testing.T) {
	for _, m := range []Metric{&KNN{}, &KMeans{}} {
		s := Subject{Units: 1, Atoms: &Atoms{Shape: []int{1}, Count: 1, Values: []float32{1}}}
		meter, err := m.Start(&s)
		if err == nil {
			err = meter.Add(&Batch{Codes: []float32{1, float32(math.NaN())}, Labels: []int{0, 1}})
		}
		fatal.If(t, err)
		expect.AnyError(t, expect.Err(meter.Values(context.Background())), m, "measures NaN")
	}
}

func TestAModelAgreesWithItself(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	const k, pixels = 8, 40
	a := &Atoms{Shape: []int{5, 8}, Count: k, Values: uniform(r, k*pixels)}
	b := &Atoms{Shape: []int{5, 8}, Count: k}
	for _, j := range r.Perm(k) { // in another order, of other scales and signs
		scale := float32(r.NormFloat64())
		for _, v := range a.row(j) {
			b.Values = append(b.Values, scale*v)
		}
	}
	got, err := CompareAtoms([]*Atoms{a, b, a}, 1)
	fatal.If(t, err)
	if math.Abs(got.Matched-1) > 1e-6 || math.Abs(got.Amari) > 1e-6 || got.Random > 0.9 || got.Permuted > 0.95 {
		t.Errorf("got %+v, want 1, 0 and less", got)
	}
	again, err := CompareAtoms([]*Atoms{a, b, a}, 1)
	if err != nil || *again != *got {
		t.Errorf("again: %+v %v, want %+v", again, err, got)
	}
}

func TestAtomsThatCannotBeComparedAreRefused(t *testing.T) {
	atoms := func(values ...float32) *Atoms { return &Atoms{Shape: []int{2}, Count: len(values) / 2, Values: values} }
	for name, models := range map[string][]*Atoms{
		"one model":    {atoms(1, 2)},
		"no atoms":     {atoms(1, 2), atoms()},
		"no model":     {atoms(1, 2), nil},
		"other pixels": {atoms(1, 2), {Shape: []int{3}, Count: 1, Values: []float32{1, 2, 3}}},
		"short":        {atoms(1, 2), {Shape: []int{2}, Count: 2, Values: []float32{1, 2}}},
		"not finite":   {atoms(1, 2), atoms(float32(math.NaN()), 1)},
	} {
		if got, err := CompareAtoms(models, 1); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// What an encoder leaves of a black image may be exactly 0 or rounding errors.
func TestHoyerContributionOfBlackImagesIsZero(t *testing.T) {
	s := Subject{Shape: []int{1, 2}, Units: 2, Atoms: line("linear", []float32{0, 0}, []float32{2, 0}, []float32{0, 1}).Atoms()}
	of := func(codes ...float32) float64 {
		return added(t, metricOf("hoyer_contribution"), s, Batch{Codes: codes[:2]}, Batch{Codes: codes[2:]})[0].Number
	}
	const want = 0.5 // of an image of one unit and a black one
	for _, left := range []float32{0, 1e-30, 1e-10} {
		expect.Equal(t, of(3, 0, 0, left), want, "with", left, "left of the second image")
		expect.Equal(t, of(0, left, 3, 0), want, "with", left, "left of the first image")
	}
	expect.Equal(t, of(3, 0, 0, 1e-6), 1, "a dim image is not black")
	expect.Equal(t, of(0, 1e-30, 1e-30, 0), 1, "a factor of all codes changes it")
	expect.Equal(t, of(0, 0, 0, 0), 0, "of black images alone")
}
