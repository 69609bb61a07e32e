package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNumbersAreThoseOfTheStandardLibrary(t *testing.T) {
	p, r := NewPCG(3, 5), rand.NewPCG(3, 5)
	for i := range 1000 {
		if got, want := p.Uint64(), r.Uint64(); got != want {
			t.Fatalf("number %d is %d, rand.PCG has %d", i, got, want)
		}
	}
}

func TestChooseComparesNumbersOfTheStandardLibrary(t *testing.T) {
	for _, b := range simd().backends {
		for _, rate := range []float64{0, 0x1p-53, 0.1, 0.25, 1. / 3, 0.5, 0.75, math.Nextafter(1, 0), 1} {
			p, r := NewPCG(3, 1<<63+4), rand.New(rand.NewPCG(3, 1<<63+4))
			for _, n := range []int{5_001, 1, 0, 15, 16, 17, 31, 32, 33, 47, 48, 2_000} { // each goes on where the one before ended
				got := make([]float32, n+1)
				got[n] = 9 // is after the end
				p.choose(got[:n], rate, 7, 2, b.choose)
				for i, v := range got[:n] {
					want := float32(2)
					if r.Float64() < rate {
						want = 7
					}
					if v != want {
						t.Fatalf("%s, rate %v, %d elements: value %d is %v, want %v", b.name, rate, n, i, v, want)
					}
				}
				if got[n] != 9 {
					t.Fatalf("%s, %d elements: the element after the end is %v", b.name, n, got[n])
				}
			}
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	dst := make([]float32, 4096)
	for _, back := range simd().backends {
		b.Run(back.name, func(b *testing.B) {
			p := NewPCG(1, 2)
			for b.Loop() {
				p.choose(dst, 0.1, 0, 1.25, back.choose)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/number")
		})
	}
}
