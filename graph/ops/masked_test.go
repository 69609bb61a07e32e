package ops_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// valueOf returns the value of n, given the values of the leaves of its graph.
func valueOf(t *testing.T, n *gorgonia.Node, leaves map[*gorgonia.Node][]float64) []float64 {
	t.Helper()
	var y gorgonia.Value
	gorgonia.Read(n, &y)
	m := gorgonia.NewTapeMachine(n.Graph())
	defer m.Close()
	for leaf, values := range leaves {
		fatal.If(t, gorgonia.Let(leaf, tensor.New(tensor.WithShape(leaf.Shape()...), tensor.WithBacking(values))))
	}
	fatal.If(t, m.RunAll())
	return y.Data().([]float64)
}

// The selected elements have the softmax of these elements alone, the others are exactly 0. A row without selected
// elements is 0.
func TestAMaskedSoftmaxIsTheSoftmaxOfWhatCounts(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewTensor(g, gorgonia.Float64, 3, gorgonia.WithShape(2, 2, 3), gorgonia.WithName("x"))
	mask := gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(2, 3), gorgonia.WithName("mask"))
	y, err := ops.MaskedSoftmax(x, mask)
	fatal.If(t, err)
	got := valueOf(t, y, map[*gorgonia.Node][]float64{x: {1, 900, 3, 0, 1, 0, 5, 6, 7, 8, 9, 1}, mask: {1, 0, 1, 0, 0, 0}})
	e := math.Exp(2.0)
	for i, want := range []float64{1 / (1 + e), 0, e / (1 + e), 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0} {
		if math.Abs(got[i]-want) > 1e-15 || want == 0 && got[i] != 0 {
			t.Errorf("element %d is %v, want %v", i, got[i], want)
		}
	}
	expect.AnyError(t, expect.Err(ops.MaskedSoftmax(x, x)), "a mask of three axes is taken")
}

func TestTheFirstPlaces(t *testing.T) {
	g := gorgonia.NewGraph()
	n := gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(4, 1), gorgonia.WithName("n"))
	y, err := ops.FirstPlaces(n, 3)
	fatal.If(t, err)
	got := valueOf(t, y, map[*gorgonia.Node][]float64{n: {0, 2, 3, 9}})
	for i, want := range []float64{0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1} {
		expect.Equal(t, got[i], want, "place", i)
	}
	expect.AnyError(t, expect.Err(ops.FirstPlaces(y, 3)), "lengths of several numbers are taken")
}
