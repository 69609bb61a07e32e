package train

import (
	"math"
	"slices"
	"testing"

	"tessera/graph"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

const tiedText = `
[model.tied]
dataset = "bars"
encoder = [{ kind = "dense", units = 3, activation = "sigmoid" }]
decoder = [{ kind = "tied" }]
constraint = [{ kind = "nonneg" }, { kind = "unit_norm" }]
`

// norms returns the norms of the rows of a matrix, or of its columns.
func norms(p *graph.Parameter, columns bool) []float64 {
	m := p.Shape[len(p.Shape)-1]
	n := len(p.Data) / m
	squares := make([]float64, n)
	if columns {
		squares = make([]float64, m)
	}
	for i, v := range p.Data {
		of := i / m
		if columns {
			of = i % m
		}
		squares[of] += float64(v) * float64(v)
	}
	for i := range squares {
		squares[i] = math.Sqrt(squares[i])
	}
	return squares
}

// negatives returns the number of negative values.
func negatives(values []float32) (n int) {
	for _, v := range values {
		if v < 0 {
			n++
		}
	}
	return n
}

func TestNegativeWeightsOfATiedDecoderAreCounted(t *testing.T) {
	run := trained(t, model(t, tiedText, "constraint=[]", "train.epochs=1"), Options{}).Run
	m, err := Open(run)
	fatal.If(t, err)
	w, err := m.Parameter("encoder.0.weight")
	fatal.If(t, err)
	want := negatives(w.Data)
	if got := lines(t, run)[0]["negative_weights"]; want == 0 || got != float64(want) {
		t.Errorf("got %v, want %d", got, want)
	}
}

// A constraint on the weight of a tied decoder applies to the atoms, even if the glob also matches the encoder's weight.
func TestConstraintsOfTiedWeightsApplyToTheAtoms(t *testing.T) {
	one := func(v float64) bool { return math.Abs(v-1) < 1e-6 }
	for _, c := range []struct {
		on      string
		columns bool
	}{{"decoder.*.weight", true}, {"decoder.0.weight", true}, {"encoder.0.weight", false}, {"*.weight", false}} {
		m, err := graph.New(model(t, tiedText, "constraint.1.on="+c.on), []int{8, 8})
		fatal.If(t, err)
		s := newStepper(m, threads(t, 2), nil)
		gradients := lists.Map(m.Parameters, func(p *graph.Parameter) []float32 { return make([]float32, len(p.Data)) })
		for i := range gradients[0] {
			gradients[0][i] = float32(i%7) - 3
		}
		for _, move := range []func(){s.Project, func() { s.Step(gradients, 0.01, 1) }} {
			move()
			w := m.Parameters[0]
			if slices.Min(w.Data) < 0 {
				t.Errorf("on %q: a negative weight is left", c.on)
			}
			for i, v := range norms(w, c.columns) {
				if !one(v) && v != 0 {
					t.Errorf("on %q: norm %d is %v, want 1", c.on, i, v)
				}
			}
			if !slices.ContainsFunc(norms(w, !c.columns), func(v float64) bool { return !one(v) }) {
				t.Errorf("on %q: rows and columns are of norm 1", c.on)
			}
		}
	}
}

// The rows of a weight with four axes are the filters of a convolution. In a transposed convolution a row is the pattern that
// a channel draws.
func TestConstraintsOfConvolutionsApplyToWholeFilters(t *testing.T) {
	const text = `
[model.convolving]
dataset = "bars"
encoder = [{ kind = "conv2d", filters = 4 }, { kind = "dense", units = 3 }]
decoder = [{ kind = "dense", units = 128 }, { kind = "reshape", shape = [8, 8, 2] }, { kind = "conv2d_transpose", filters = 1 }]
constraint = [{ kind = "unit_norm", on = "*.weight" }]
`
	m, err := graph.New(model(t, text), []int{8, 8})
	fatal.If(t, err)
	s := newStepper(m, threads(t, 2), nil)
	gradients := make([][]float32, len(m.Parameters))
	for i, p := range m.Parameters {
		gradients[i] = make([]float32, len(p.Data))
		for k := range p.Data {
			gradients[i][k] = float32(k%7) - 3
		}
	}
	for _, move := range []func(){s.Project, func() { s.Step(gradients, 0.01, 1) }} {
		move()
		for path, units := range map[string]int{"encoder.0.weight": 4, "encoder.1.weight": 256, "decoder.2.weight": 2} {
			w, err := m.Parameter(path)
			fatal.If(t, err)
			all := norms(w, len(w.Shape) > 2)
			if len(all) != units || slices.ContainsFunc(all, func(v float64) bool { return math.Abs(v-1) > 1e-6 }) {
				t.Errorf("%s: norms %v, want %d of 1", path, all, units)
			}
		}
	}
}

// A model with a tied decoder can have a teacher: the hook lends its weights under the encoder's name.
func TestConsistencyOfATiedOutputTrains(t *testing.T) {
	m := model(t, tiedText, "loss=[{kind='mse'},{kind='consistency',on='output'}]", "hook.teacher.decay=0.5", "train.epochs=1", "train.batch=8", "dataset.limit=32")
	if term := lines(t, trained(t, m, Options{}).Run)[0]["consistency"]; !(term.(float64) > 0) {
		t.Errorf("the distance from the teacher is %v, want more than 0", term)
	}
}
