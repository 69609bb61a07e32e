package random

import (
	"math"
	"testing"
)

func TestNumbersAreThoseOfTheStream(t *testing.T) {
	p, r := Numbers(3, "encoder.0/1", 5), Stream(3, "encoder.0/1", 5)
	for i := range 1000 {
		if got, want := p.Uint64(), r.Uint64(); got != want {
			t.Fatalf("number %d is %d, the stream has %d", i, got, want)
		}
	}
}

func TestChooseComparesNumbersOfTheStream(t *testing.T) {
	for _, rate := range []float64{0, 0x1p-53, 0.1, 0.25, 1. / 3, 0.5, 0.75, math.Nextafter(1, 0), 1} {
		p, r := Numbers(3, "noise", 4), Stream(3, "noise", 4)
		for range 2 { // the second goes on where the first ended
			got := make([]float32, 5_001)
			p.Choose(got, rate, 7, 2)
			for i, v := range got {
				want := float32(2)
				if r.Float64() < rate {
					want = 7
				}
				if v != want {
					t.Fatalf("rate %v: value %d is %v, want %v", rate, i, v, want)
				}
			}
		}
	}
}
