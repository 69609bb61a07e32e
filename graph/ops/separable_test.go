package ops_test

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// uneven maps images of 4 x 3 pixels and 2 channels to 3 x 2 pixels with filters of different lengths.
var uneven = ops.Separable{In: [3]int{4, 3, 2},
	Rows:    []ops.Tap{{From: 0, Weights: []float64{1}}, {From: 1, Weights: []float64{0.5, -2, 0.25}}, {From: 2, Weights: []float64{3, 1}}},
	Columns: []ops.Tap{{From: 0, Weights: []float64{1, 2, 3}}, {From: 1, Weights: []float64{-1}}}}

func TestSeparableEqualsPlainLoops(t *testing.T) {
	const batch = 2
	s := uneven
	x := gradcheck.Values[float64](batch*24, layers.Everything, random.Stream(1, "x", 0))
	var want []float64
	for b := range batch {
		for _, r := range s.Rows {
			for _, col := range s.Columns {
				for c := range 2 {
					sum := 0.0
					for k, v := range r.Weights {
						for l, w := range col.Weights {
							sum += v * w * x[b*24+((r.From+k)*3+col.From+l)*2+c]
						}
					}
					want = append(want, sum)
				}
			}
		}
	}
	build := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return s.Apply(b.Leaf("x", []int{batch, 24}, x, false))
	}
	got, _, err := gradcheck.Evaluate(build)
	fatal.If(t, err)
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return a-b < 1e-14 && b-a < 1e-14 }) {
		t.Errorf("got %v, want %v", got, want)
	}
	expect.NoError(t, gradcheck.Check(gradcheck.Scalar(build)))
	expect.NoError(t, gradcheck.Check(gradcheck.SquaredGradient(build)))
}

func TestJoinPutsRowsSideBySide(t *testing.T) {
	x, y := []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8, 9, 10}
	joined := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Join(b.Leaf("x", []int{2, 2}, x, false), b.Leaf("y", []int{2, 3}, y, false))
	}
	got, _, err := gradcheck.Evaluate(joined)
	if want := []float64{1, 2, 5, 6, 7, 3, 4, 8, 9, 10}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: got %v, want %v", err, got, want)
	}
	squared := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) { // squared, so that the derivatives are not constant
		var c ops.Chain
		n := c.Do("join", func() (*gorgonia.Node, error) { return joined(b) })
		return c.Square(c.Do("columns", func() (*gorgonia.Node, error) { return ops.Columns(n, 1, 3) })), c.Err()
	}
	for _, e := range []gradcheck.Expression[float64]{gradcheck.Scalar(squared), gradcheck.SquaredGradient(squared)} {
		expect.NoError(t, gradcheck.Check(e))
	}
}

func TestFiltersAndJoinsThatDoNotFitAreRefused(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 24), gorgonia.WithName("x"))
	y := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 24), gorgonia.WithName("y"))
	beyond := ops.Separable{In: uneven.In, Rows: uneven.Rows, Columns: []ops.Tap{{From: 2, Weights: []float64{1, 1}}}}
	for what, f := range map[string]func() (*gorgonia.Node, error){
		"a filter beyond the edge": func() (*gorgonia.Node, error) { return beyond.Apply(x) },
		"no columns":               func() (*gorgonia.Node, error) { return ops.Separable{In: uneven.In, Rows: uneven.Rows}.Apply(x) },
		"other images":             func() (*gorgonia.Node, error) { return ops.Separable{In: [3]int{5, 5, 1}}.Apply(x) },
		"rows":                     func() (*gorgonia.Node, error) { return ops.Join(x, y) },
		"columns beyond":           func() (*gorgonia.Node, error) { return ops.Columns(x, 20, 5) },
	} {
		expect.AnyError(t, expect.Err(f()), what, "accepted")
	}
}
