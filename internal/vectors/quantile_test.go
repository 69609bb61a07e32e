package vectors

import (
	"testing"

	"tessera/internal/expect"
)

// The numbers are those of numpy.quantile([1, 2, 4, 8, 16], q).
func TestQuantilesAreThoseOfNumPy(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.01: 1.04, 0.3: 2.4, 0.5: 4, 0.99: 15.68, 1: 16} {
		expect.Near(t, Quantile([]float32{1, 2, 4, 8, 16}, q), want, 1e-12, q)
	}
	expect.Equal(t, Quantile([]float64{3}, 0.99), 3, "of one number")
}
