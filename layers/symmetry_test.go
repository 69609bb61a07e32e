package layers_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["group_norm"] = []map[string]any{{}, {"groups": 2, "epsilon": 0.1}}
	settings["layer_scale"] = []map[string]any{{"scale": 0.5}}
	settings["conv1d"] = []map[string]any{
		{"filters": 2, "kernel": 2, "padding": "valid", "stride": 2, "bias": false},
		{"filters": 4, "kernel": 2, "padding": 2, "dilation": 2, "activation": layers.ActivationName("sigmoid")},
	}
}

// applied returns a function that applies a layer with random parameters to one input at inference, in float64.
func applied(t *testing.T, l layers.Layer, shape []int) func(x []float64) []float64 {
	t.Helper()
	return appliedTo(t, l, 1, shape, false)
}

// appliedTo returns a function that applies a layer with random parameters to a batch, in float64.
func appliedTo(t *testing.T, l layers.Layer, batch int, shape []int, training bool) func(x []float64) []float64 {
	t.Helper()
	build := gradcheck.Layer(l, make([]float64, batch*volume.Of(shape)), batch, shape, training)
	var y gorgonia.Value
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		n, err := build(b)
		if err == nil {
			gorgonia.Read(n, &y)
			return gorgonia.Sum(n)
		}
		return nil, err
	}, true)
	fatal.If(t, err)
	t.Cleanup(func() { g.Close() })
	r := rand.New(rand.NewPCG(5, 5))
	for _, p := range l.Parameters(shape) {
		for i := range g.Leaf(p.Name).Values {
			g.Leaf(p.Name).Values[i] = r.NormFloat64()
		}
	}
	return func(x []float64) []float64 {
		copy(g.Leaf(gradcheck.Input).Values, x)
		fatal.If(t, g.Run())
		return append([]float64(nil), y.Data().([]float64)...)
	}
}

// same checks that numbers differ by at most a tolerance.
func same(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(got[i]-w) <= tolerance) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], w)
		}
	}
}

// A convolution commutes with translations: if an input moves by a stride, and nothing of it leaves the frame, the output moves by
// one place. A dense layer does not.
func TestConvolutionsCommuteWithTranslations(t *testing.T) {
	for _, c := range []struct {
		layer string
		keys  map[string]any
		shape []int
		move  int // number of places of the first axis by which the input moves
		want  int // number of places of the output's first axis by which the output moves
	}{
		{"conv1d", map[string]any{"filters": 3}, []int{9, 2}, 1, 1},
		{"conv1d", map[string]any{"filters": 4, "stride": 2, "kernel": 4, "padding": "valid", "groups": 2}, []int{12, 2}, 2, 1},
		{"conv1d", map[string]any{"filters": 1, "padding": 1, "dilation": 2, "activation": layers.ActivationName("relu")}, []int{10}, 3, 3},
		{"conv2d", map[string]any{"filters": 3}, []int{7, 4, 2}, 1, 1},
		{"conv2d", map[string]any{"filters": 2, "stride": 2, "padding": "valid"}, []int{9, 5}, 2, 1},
		{"conv2d_transpose", map[string]any{"filters": 2, "stride": 2, "kernel": 4, "padding": "valid"}, []int{6, 3, 2}, 1, 2},
	} {
		l := fresh(t, c.layer, c.keys)()
		out, err := l.OutputShape(c.shape)
		fatal.If(t, err)
		f, row, wide := applied(t, l, c.shape), volume.Of(c.shape[1:]), volume.Of(out[1:])
		r, x := rand.New(rand.NewPCG(1, 2)), make([]float64, volume.Of(c.shape))
		for i := range x[:len(x)-c.move*row] { // the last rows are zero
			x[i] = r.NormFloat64()
		}
		moved := append(make([]float64, c.move*row), x[:len(x)-c.move*row]...)
		before, after := f(x), f(moved)
		same(t, titled(c.layer, c.keys), after[c.want*wide:], before[:len(before)-c.want*wide], 1e-12)
	}
	f := applied(t, fresh(t, "dense", map[string]any{"units": 4})(), []int{4})
	if a, b := f([]float64{1, 2, 3, 0}), f([]float64{0, 1, 2, 3}); math.Abs(b[1]-a[0]) < 1e-6 {
		t.Error("the control, a dense layer, commutes with translations")
	}
}

// A normalisation gives the same for a x + b in place of x, a > 0, with one a and b for all values that it normalises together. The
// epsilon breaks the invariance to a slightly; with a small epsilon the difference vanishes.
func TestNormalisationsAreInvariantToScaleAndShift(t *testing.T) {
	const epsilon = 1e-13
	for _, c := range []struct {
		layer  string
		keys   map[string]any
		shape  []int
		blocks func(i int) int // the block of value i: values of one block are normalised together
	}{
		{"layer_norm", map[string]any{"epsilon": epsilon}, []int{5, 4}, func(i int) int { return i / 4 }},
		{"instance_norm", map[string]any{"epsilon": epsilon}, []int{3, 4, 2}, func(i int) int { return i % 2 }},
		{"group_norm", map[string]any{"epsilon": epsilon}, []int{3, 2, 4}, func(int) int { return 0 }},
		{"group_norm", map[string]any{"epsilon": epsilon, "groups": 2}, []int{3, 2, 4}, func(i int) int { return i % 4 / 2 }},
		{"group_norm", map[string]any{"epsilon": epsilon, "groups": 4}, []int{3, 2, 4}, func(i int) int { return i % 4 }},
	} {
		f := applied(t, fresh(t, c.layer, c.keys)(), c.shape)
		r, n := rand.New(rand.NewPCG(3, 4)), volume.Of(c.shape)
		x, changed := make([]float64, n), make([]float64, n)
		scales, shifts := make([]float64, n), make([]float64, n)
		for i := range n {
			scales[i], shifts[i] = math.Exp(r.NormFloat64()), 5*r.NormFloat64()
		}
		for i := range x {
			x[i] = r.NormFloat64()
			changed[i] = scales[c.blocks(i)]*x[i] + shifts[c.blocks(i)]
		}
		y := f(x)
		same(t, titled(c.layer, c.keys), f(changed), y, 1e-9)
		changed[0]++ // the control: another change of one value changes the output
		if z := f(changed); math.Abs(z[0]-y[0]) < 1e-6 {
			t.Errorf("%s: ignores its input", titled(c.layer, c.keys))
		}
	}
	// In training, batch_norm normalises every unit over the batch: only the direction of a weight before it matters.
	f, r := appliedTo(t, fresh(t, "batch_norm", map[string]any{"epsilon": epsilon})(), 5, []int{3}, true), rand.New(rand.NewPCG(3, 4))
	batch, changed := make([]float64, 15), make([]float64, 15)
	for i := range batch {
		batch[i] = r.NormFloat64()
		changed[i] = []float64{0.1, 3, 20}[i%3]*batch[i] + []float64{-4, 0, 2}[i%3]
	}
	y := f(batch)
	same(t, "batch_norm in training", f(changed), y, 1e-9)
	changed[0]++
	if z := f(changed); math.Abs(z[0]-y[0]) < 1e-6 {
		t.Error("batch_norm ignores its input")
	}
	// As many groups as channels are instance_norm, up to the parameters, which applied draws in the same order.
	x := lists.Of(24, func(i int) float64 { return float64(i*i%7) - 2 })
	same(t, "group_norm with a group for each channel", applied(t, fresh(t, "group_norm", map[string]any{"groups": 4})(), []int{3, 2, 4})(x),
		applied(t, fresh(t, "instance_norm", nil)(), []int{3, 2, 4})(x), 1e-12)
}
