package ops_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/fatal"
)

// Row i has the softmax of its first i + 1 elements, and exact zeros behind them.
func TestACausalSoftmaxIsTheSoftmaxOfWhatWasBefore(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewTensor(g, gorgonia.Float64, 3, gorgonia.WithShape(2, 3, 3), gorgonia.WithName("x"))
	y, err := ops.CausalSoftmax(x)
	fatal.If(t, err)
	in := []float64{1, 900, 3, 0, 1, 900, 2, 1, 2, 5, 6, 7, 1, 1, 1, 800, 800, 800}
	got := valueOf(t, y, map[*gorgonia.Node][]float64{x: in})
	for i, v := range got {
		row, j := i/3, i%3
		sum := 0.0
		for k := range row%3 + 1 {
			sum += math.Exp(in[3*row+k] - in[i])
		}
		want := 1 / sum
		if j > row%3 {
			want = 0
		}
		if math.Abs(v-want) > 1e-15 || want == 0 && v != 0 {
			t.Errorf("row %d, element %d is %v, want %v", row, j, v, want)
		}
	}
	if _, err := ops.CausalSoftmax(gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(2, 3), gorgonia.WithName("z"))); err == nil {
		t.Error("rows of another number than their length are taken")
	}
}
