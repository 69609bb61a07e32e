package ops_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/laws/gradcheck"
	"tessera/ops"
)

func TestSaturatedMarksTheLargestValuesOfAll(t *testing.T) {
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{0, 2, 1.999, 1.99, -2, math.NaN()}, []float64{0, 1, 1, 0, 0, 0}},
		{[]float64{0, 200, 199.9, 199, -200, 200}, []float64{0, 1, 1, 0, 0, 1}},
		{[]float64{0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
		{[]float64{-1, -2, -3, -1, -1, -1}, []float64{0, 0, 0, 0, 0, 0}},
	} {
		got := computed(t, func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return ops.Saturated(b.Leaf("x", []int{2, 3}, c.x, true), 0.999)
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.x, got, c.want)
		}
	}
}
