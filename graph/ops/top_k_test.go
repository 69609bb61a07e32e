package ops

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	vector "tessera/internal/engine/kernel"
	"tessera/internal/lists"
)

// keptBySorting copies from where TopK of the row x keeps a value, by its definition: it sorts the row, with NaN first.
func keptBySorting(x, from []float64, k int) []float64 {
	if k == len(x) {
		return from
	}
	y := make([]float64, len(x))
	sorted := slices.Sorted(slices.Values(x))
	least := sorted[len(x)-k]
	equal := 0
	for _, v := range sorted[len(x)-k:] {
		if v == least {
			equal++
		}
	}
	for j, v := range x {
		if v > least {
			y[j] = from[j]
		} else if v == least && equal > 0 {
			y[j] = from[j]
			equal--
		}
	}
	return y
}

func sameValues(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// The rows exercise all paths of the scan: every value a new maximum, equal values, infinities and NaN.
func TestTopKKeepsWhatSortingKeeps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	special := []float64{math.Inf(1), math.Inf(-1), math.NaN(), 0, math.Copysign(0, -1), 1}
	rows := map[string]func(i int) float64{
		"random":     func(int) float64 { return random.NormFloat64() },
		"rectified":  func(int) float64 { return max(0, random.NormFloat64()) },
		"ascending":  func(i int) float64 { return float64(i) },
		"descending": func(i int) float64 { return -float64(i) },
		"equal":      func(int) float64 { return 2 },
		"few values": func(int) float64 { return float64(random.IntN(3)) },
		"special":    func(int) float64 { return special[random.IntN(len(special))] },
		"infinite":   func(i int) float64 { return special[min(i%5, 1)] },
		"mostly NaN": func(i int) float64 { return special[2*min(i%9, 1)] },
	}
	for name, row := range rows {
		for _, n := range []int{1, 2, 3, 50, 300, 2000} {
			for _, k := range []int{1, 2, 3, 25, 70, 299, 1999} {
				if k > n {
					continue
				}
				x := lists.Of(3*n, func(i int) float64 { return row(i) })
				kept := func(from []float64) []float64 {
					return slices.Concat(keptBySorting(x[:n], from[:n], k), keptBySorting(x[n:2*n], from[n:2*n], k), keptBySorting(x[2*n:], from[2*n:], k))
				}
				want, got := kept(x), make([]float64, 3*n)
				topK(k, vector.Float64)(got, [][]float64{x}, n)
				if !sameValues(got, want) {
					t.Fatalf("%s: %d of %d: got %v, want %v", name, k, n, got, want)
				}
				gradient := lists.Of(3*n, func(i int) float64 { return float64(i + 1) })
				slopes := kept(gradient)
				if topKSlope(k, vector.Float64)(gradient, [][]float64{x, want, gradient}, n); !sameValues(gradient, slopes) {
					t.Fatalf("%s: %d of %d: got the gradient %v, want %v", name, k, n, gradient, slopes)
				}
				if topK(k, vector.Float64)(x, [][]float64{x}, n); !sameValues(x, want) {
					t.Fatalf("%s: %d of %d: in place differs", name, k, n)
				}
			}
		}
	}
}

func BenchmarkTopK(b *testing.B) {
	const n, k = 8192, 32
	random := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, 64*n), make([]float32, 64*n)
	for i := range x {
		x[i] = float32(max(0, random.NormFloat64()))
	}
	run := topK(k, vector.Float32)
	b.SetBytes(64 * n * 4)
	for b.Loop() {
		run(y, [][]float32{x}, n)
	}
}

func TestLeastIsTheLargestValueThatIsNotKept(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, rows := range []int{1, 3, 17} {
		for _, of := range []int{1, 5, 200} {
			for _, k := range []float64{0, 0.5, 1, 2.5, 40, 300} {
				for _, shift := range []float64{-9, 0, 9} {
					x := make([]float64, rows*of)
					for i := range x {
						x[i] = math.Round(4*random.NormFloat64())/4 + shift // with equal values
					}
					want := 0.0
					if m := int(math.Round(k * float64(rows))); m < len(x) {
						want = max(0, slices.Sorted(slices.Values(x))[len(x)-1-m])
					}
					got := []float64{7}
					f := least(LeastOp{rows, of}, vector.Float64)
					for range 2 { // the second time with memory of the first
						if f(got, [][]float64{x, {k}}, nil, 0, 1); got[0] != want {
							t.Fatalf("%d rows of %d values, k = %v: got %v, want %v", rows, of, k, got[0], want)
						}
					}
					x[random.IntN(len(x))] = math.NaN()
					if f(got, [][]float64{x, {k}}, nil, 0, 1); got[0] == got[0] {
						t.Fatalf("%d rows of %d values with a NaN: got %v, want NaN", rows, of, got[0])
					}
				}
			}
		}
	}
}
