package layers_test

import (
	"math"
	"testing"

	"tessera/internal/expect"
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
