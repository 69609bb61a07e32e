package layers_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// Only -1 is an unknown class, and only if the layer takes it: any other index outside of the table gives NaN.
func TestAnEmbeddingTakesOneUnknownIndex(t *testing.T) {
	x := []float64{-1, -2, -8, -0.5, 7, 8, 6}
	for unknown, taken := range map[bool][]bool{false: {false, false, false, false, false, false, true}, true: {true, false, false, false, false, false, true}} {
		l := fresh(t, "embedding", map[string]any{"units": 2, "vocabulary": 7, "unknown": unknown})()
		y := apply(t, l, x, 1, []int{len(x)}, false)
		for i, want := range taken {
			expect.Equal(t, !math.IsNaN(y[2*i]) && !math.IsNaN(y[2*i+1]), want, "unknown =", unknown, x[i], "gives", y[2*i:2*i+2])
		}
	}
}

// weighted is a scope with one value and one parameter.
type weighted struct {
	layers.Scope
	mask, table *gorgonia.Node
}

func (w weighted) Value(string) *gorgonia.Node     { return w.mask }
func (w weighted) Parameter(string) *gorgonia.Node { return w.table }

// The mask of a mean has any weights, not only 0 and 1.
func TestTheMaskOfAMeanHasWeights(t *testing.T) {
	table, mask := []float64{1, 10, 2, 20, 4, 40}, []float64{1, 0.5, 0, 0, 0.3, 0.1, 0, 0, 0}
	for _, name := range []string{"take_token", "embedding"} {
		got, _, err := gradcheck.Evaluate(func(b *gradcheck.Builder[float64]) (y *gorgonia.Node, err error) {
			w := weighted{mask: b.Leaf("mask", []int{3, 3}, mask, true), table: b.Leaf("table", []int{3, 2}, table, false)}
			x := b.Leaf("x", []int{3, 3}, []float64{0, 1, 2, 2, 1, 0, 0, 1, 2}, true)
			if name == "embedding" {
				return (&layers.Embedding{Vocabulary: 3, Units: 2, Mask: "mask"}).Apply(w, x)
			}
			if x, err = (&layers.Embedding{Vocabulary: 3, Units: 2}).Apply(w, x); err != nil {
				return nil, err
			}
			return (&layers.TakeToken{Mean: true, Mask: "mask"}).Apply(w, x)
		})
		fatal.If(t, err)
		wantNear(t, name, got, []float64{2 / 1.5, 20 / 1.5, 0.7 / 0.4, 7 / 0.4, 0, 0}, 1e-12)
	}
}
