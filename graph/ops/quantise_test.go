package ops_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
)

// computed returns the value of an expression.
func computed(t *testing.T, e gradcheck.Expression[float64]) []float64 {
	t.Helper()
	run, err := gradcheck.Compile(e, false)
	fatal.If(t, err)
	defer run.Close()
	fatal.If(t, run.Run())
	return slices.Clone(run.Output())
}

func TestArgMaxTakesTheFirstOfTheLargestValues(t *testing.T) {
	got := computed(t, func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.ArgMax(b.Leaf("x", []int{2, 2, 3}, []float64{1, 3, 2, -1, -2, -1, 0, math.NaN(), 5, 2, 2, 7}, true))
	})
	if !slices.Equal(got[:2], []float64{1, 0}) || !math.IsNaN(got[2]) || got[3] != 2 {
		t.Errorf("got %v, want 1, 0, NaN, 2", got)
	}
}

func TestRefillTakesTheRowsWithTheLargestKeys(t *testing.T) {
	got := computed(t, func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Refill(b.Leaf("table", []int{4, 2}, []float64{0, 1, 2, 3, 4, 5, 6, 7}, true), b.Leaf("dead", []int{4}, []float64{1, 0, 1, 1}, true),
			b.Leaf("x", []int{2, 2}, []float64{10, 11, 20, 21}, true), b.Leaf("keys", []int{2}, []float64{0.2, 0.8}, true))
	})
	if want := []float64{20, 21, 2, 3, 10, 11, 20, 21}; !slices.Equal(got, want) { // two rows for three dead entries
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestScatterAddsTheRowsOfAnIndex(t *testing.T) {
	got := computed(t, func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Scatter(b.Leaf("indices", []int{3}, []float64{1, 0, 1}, true), b.Leaf("x", []int{3, 2}, []float64{1, 2, 3, 4, 5, 6}, true), 3)
	})
	expect.Slice(t, got, []float64{3, 4, 6, 8, 0, 0})
}
