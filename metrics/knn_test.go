package metrics

import (
	"math"
	"testing"

	"tessera/internal/fit"
	"tessera/internal/random"
)

// TestADistanceIsCompletedBelowItsLimitOnly compares the shortened distance with the complete one, to the bit.
func TestADistanceIsCompletedBelowItsLimitOnly(t *testing.T) {
	r := random.Stream(1, "distances", 0)
	for range 2000 {
		a, b := make([]float64, r.IntN(40)), make([]float64, 40)
		for i := range b {
			b[i] = r.NormFloat64()
		}
		for i := range a {
			a[i] = r.NormFloat64()
		}
		whole := fit.SquaredDistance(a, b)
		for _, most := range []float64{0, whole / 2, whole, math.Nextafter(whole, math.Inf(1)), 2 * whole, math.Inf(1)} {
			switch got := squaredDistanceUpTo(a, b, most); {
			case whole < most && got != whole:
				t.Fatalf("width %d, limit %v: got %v, want %v", len(a), most, got, whole)
			case whole >= most && (got < most || got > whole):
				t.Fatalf("width %d, limit %v: got %v, want from the limit to %v", len(a), most, got, whole)
			}
		}
	}
}
