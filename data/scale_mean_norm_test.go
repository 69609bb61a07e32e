package data

import (
	"math"
	"testing"

	"tessera/internal/fatal"
)

func TestMeanNormGivesTheMeanOfTheNorms(t *testing.T) {
	images, err := NewFloats([]int{2}, []float32{3, 4, 0, 0, -6, 8}, nil)
	fatal.If(t, err)
	for to, want := range map[float64]float64{0: math.Sqrt2, 10: 10} {
		s, err := (&MeanNorm{To: to}).Fit(images)
		fatal.If(t, err)
		for _, f := range s.Factor {
			if got := 5 * float64(f); math.Abs(got-want) > 1e-6 { // the norms are 5, 0 and 10
				t.Errorf("to = %v: mean norm %v, want %v", to, got, want)
			}
		}
	}
}
