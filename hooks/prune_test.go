package hooks

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/lists"
)

// The expected indices come from sorting all indices by weight.
func TestPruningTakesTheSmallest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		values := make([]float32, r.IntN(40))
		for i := range values {
			values[i] = float32(r.IntN(7)-3) / 4 // many ties
		}
		order := lists.Of(len(values), func(i int) int32 { return int32(i) })
		size := func(i int32) float64 { return math.Abs(float64(values[i])) }
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(size(a), size(b)) })
		for _, fraction := range []float64{0.01, 0.25, 0.5, 0.99} {
			want := slices.Sorted(slices.Values(order[:int(fraction*float64(len(values)))]))
			if got := smallest(values, fraction, 0); !slices.Equal(got, want) {
				t.Fatalf("%v of %v: got %v, want %v", fraction, values, got, want)
			}
		}
		for _, threshold := range []float64{0.1, 0.25, 0.5, 1} {
			want := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(order), func(i int32) bool { return size(i) > threshold })))
			if got := smallest(values, 0, threshold); !slices.Equal(got, want) {
				t.Fatalf("to %v of %v: got %v, want %v", threshold, values, got, want)
			}
		}
	}
}

// A decimal fraction in float64 may be smaller than it says: 0.29 times 100 is below 29.
func TestPruningTakesTheWholeFraction(t *testing.T) {
	expect.Equal(t, len(smallest(make([]float32, 100), 0.29, 0)), 29, "0.29 of 100 values")
}
