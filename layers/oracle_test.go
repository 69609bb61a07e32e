package layers_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// activations contains each activation in plain Go, applied to one row.
var activations = map[string]func(x []float64) []float64{
	"linear":  each(func(x float64) float64 { return x }),
	"sigmoid": each(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	"tanh":    each(math.Tanh),
	"relu":    each(func(x float64) float64 { return max(x, 0) }),
	"leaky_relu": each(func(x float64) float64 {
		if x < 0 {
			return 0.1 * x
		}
		return x
	}),
	"elu": each(func(x float64) float64 {
		if x < 0 {
			return math.Exp(x) - 1
		}
		return x
	}),
	"gelu":         each(func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }),
	"silu":         each(func(x float64) float64 { return x / (1 + math.Exp(-x)) }),
	"hard_sigmoid": each(func(x float64) float64 { return min(max(x/6+0.5, 0), 1) }),
	"softplus":     each(func(x float64) float64 { return math.Log(1 + math.Exp(x)) }),
	"softmax": func(x []float64) []float64 {
		sum := 0.0
		y := each(math.Exp)(x)
		for _, v := range y {
			sum += v
		}
		return each(func(v float64) float64 { return v / sum })(y)
	},
}

func each(f func(float64) float64) func([]float64) []float64 {
	return func(x []float64) []float64 {
		y := lists.Map(x, func(v float64) float64 { return f(v) })
		return y
	}
}

func apply(t *testing.T, l layers.Layer, x []float64, batch int, in []int, training bool) []float64 {
	t.Helper()
	y, _, err := gradcheck.Evaluate(gradcheck.Layer(l, x, batch, in, training))
	fatal.If(t, err)
	return y
}

func wantNear(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		expect.Near(t, got[i], want[i], tolerance*(1+math.Abs(want[i])), what, "element", i)
	}
}

func TestEveryActivationEqualsItsFormula(t *testing.T) {
	x := []float64{-5, -1, -0.1, 0, 0.1, 1, 5, 2}
	for name, f := range activations {
		l := fresh(t, name, nil)()
		wantNear(t, name, apply(t, l, x, 2, []int{4}, false), slices.Concat(f(x[:4]), f(x[4:])), 1e-12)
	}
}

func TestSharperSoftplusIsNearerToRelu(t *testing.T) {
	x := []float64{-5, -1, -0.1, 0, 0.1, 1, 5, 2}
	for _, s := range []float64{0.5, 10} {
		want := each(func(x float64) float64 { return math.Log(1+math.Exp(s*x)) / s })(x)
		l := fresh(t, "softplus", map[string]any{"sharpness": s})()
		wantNear(t, "softplus", apply(t, l, x, 1, []int{8}, false), want, 1e-12)
	}
}

// saturated contains the limits of each activation and of its derivative far from 0.
var saturated = map[string]struct{ low, lowSlope, high, highSlope float64 }{
	"sigmoid":  {0, 0, 1, 0},
	"tanh":     {-1, 0, 1, 0},
	"relu":     {0, 0, 100, 1},
	"elu":      {-1, 0, 100, 1},
	"softplus": {0, 0, 100, 1},

	"gelu":         {0, 0, 100, 1},
	"silu":         {0, 0, 100, 1},
	"hard_sigmoid": {0, 0, 1, 0},
}

func testSaturation[T float32 | float64](t *testing.T, name string) {
	want := saturated[name]
	e := gradcheck.Layer(fresh(t, name, nil)(), []T{-100, 100}, 1, []int{2}, false)
	y, _, err := gradcheck.Evaluate(e)
	fatal.If(t, err)
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		n, err := e(b)
		if err != nil {
			return nil, err
		}
		return gorgonia.Sum(n)
	}, true)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	dx := g.Leaf(gradcheck.Input).Gradient()
	got := []float64{float64(y[0]), float64(dx[0]), float64(y[1]), float64(dx[1])}
	wantNear(t, fmt.Sprintf("%s of %T", name, y[0]), got, []float64{want.low, want.lowSlope, want.high, want.highSlope}, 1e-7)
}

func TestActivationsSaturateWithoutOverflow(t *testing.T) {
	for name := range saturated {
		testSaturation[float32](t, name)
		testSaturation[float64](t, name)
	}
}

func TestDenseEqualsPlainLoops(t *testing.T) {
	const batch, inputs, units = 3, 6, 4
	x := gradcheck.Values[float64](batch*inputs, layers.Everything, random.Stream(1, "x", 0))
	for name, activation := range activations {
		l := &layers.Dense{Units: units, Activation: layers.ActivationName(name), Bias: true, Init: &layers.HeNormal{}}
		g, err := gradcheck.Compile(gradcheck.Layer(l, x, batch, []int{2, 3}, false), false)
		fatal.If(t, err)
		w, b := g.Leaf("weight").Values, g.Leaf("bias").Values
		for j := range b {
			b[j] = float64(j) - 1.5
		}
		fatal.If(t, g.Run())
		var want []float64
		for i := range batch {
			row := slices.Clone(b)
			for j := range row {
				for k := range inputs {
					row[j] += x[i*inputs+k] * w[k*units+j]
				}
			}
			want = append(want, activation(row)...)
		}
		wantNear(t, "dense "+name, g.Output(), want, 1e-12)
		fatal.If(t, g.Close())
	}
}

func TestFlattenAndReshapeKeepTheOrder(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, l := range []layers.Layer{&layers.Flatten{}, &layers.Reshape{Shape: []int{3, 2}}} {
		wantNear(t, fmt.Sprintf("%T", l), apply(t, l, x, 2, []int{2, 3}, true), x, 0)
	}
}

func TestShapesThatDoNotFitAreRefused(t *testing.T) {
	for _, l := range []layers.Layer{
		&layers.Reshape{}, &layers.Reshape{Shape: []int{4}}, &layers.Reshape{Shape: []int{-2, -3}},
		&layers.Dense{Activation: "linear"}, &layers.Dense{Units: -1, Activation: "linear"}, &layers.Dense{Units: 3, Activation: "sigmoidal"},
	} {
		if shape, err := l.OutputShape([]int{2, 3}); err == nil {
			t.Errorf("%T%+v: got shape %v, want an error", l, l, shape)
		}
	}
}

func TestShallowStudyModelHasItsParameters(t *testing.T) {
	total := 0
	encoder := &layers.Dense{Units: 100, Bias: true}
	decoder := layers.Layer(&layers.Dense{Bias: true})
	decoder.(layers.Sized).SetOutputUnits(784)
	for _, p := range append(encoder.Parameters([]int{28, 28}), decoder.Parameters([]int{100})...) {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		total += n
	}
	expect.Equal(t, total, 157684)
}
