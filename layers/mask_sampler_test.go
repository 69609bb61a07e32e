package layers

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A mask has the values that comparing r.Float64() with the rate gives.
func TestAMaskIsDrawnByComparingUniformNumbers(t *testing.T) {
	for _, rate := range []float64{0, 0x1p-53, 0.1, 0.25, 1. / 3, 0.5, 0.75, math.Nextafter(1, 0), 1} {
		got := make([]float32, 10_000)
		maskSampler{drop: rate, keep: 2}.Sample(got, rand.New(rand.NewPCG(3, 4)))
		r := rand.New(rand.NewPCG(3, 4))
		for i, v := range got {
			want := float32(2)
			if r.Float64() < rate {
				want = 0
			}
			if v != want {
				t.Fatalf("rate %v: value %d is %v, want %v", rate, i, v, want)
			}
		}
	}
}
