package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// matrix returns a stored operand with its own leading dimension. The padding is NaN.
func matrix[T Float](r *rand.Rand, rows, columns, ld int) []T {
	x := make([]T, max(0, (rows-1)*ld+columns))
	for i := range x {
		x[i] = T(math.NaN())
	}
	for i := range rows {
		for j := range columns {
			x[i*ld+j] = T(r.NormFloat64())
		}
	}
	return x
}

// checkProduct compares one call with plain loops in float64, and checks that the padding of C is unchanged.
func checkProduct[T Float](t *testing.T, s *Set[T], transA, transB bool, m, n, k int, alpha, beta T, pad int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(m*1000+n), uint64(k)))
	ra, ca, rb, cb := m, k, k, n
	if transA {
		ra, ca = k, m
	}
	if transB {
		rb, cb = n, k
	}
	lda, ldb, ldc := max(1, ca)+pad, max(1, cb)+2*pad, max(1, n)+3*pad
	a, b, c := matrix[T](r, ra, ca, lda), matrix[T](r, rb, cb, ldb), matrix[T](r, m, n, ldc)
	if beta == 0 {
		for i := range c {
			c[i] = T(math.NaN())
		}
	}
	old := append([]T(nil), c...)
	s.Gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	ars, acs := strides(transA, lda)
	brs, bcs := strides(transB, ldb)
	eps := 1.2e-7
	if _, double := any(alpha).(float64); double {
		eps = 2.3e-16
	}
	for at := range c {
		i, j := at/ldc, at%ldc
		if j >= n {
			if c[at] == c[at] {
				t.Fatalf("%s %v %v %d %d %d: padding of C written at %d,%d", s.Name, transA, transB, m, n, k, i, j)
			}
			continue
		}
		var sum, size float64
		for p := range k {
			v := float64(a[i*ars+p*acs]) * float64(b[p*brs+j*bcs])
			sum += v
			size += math.Abs(v)
		}
		want := float64(alpha) * sum
		if beta != 0 {
			want += float64(beta) * float64(old[at])
			size += math.Abs(float64(old[at]))
		}
		limit := eps * (size + 1) * (4 + math.Sqrt(float64(k)))
		if d := math.Abs(float64(c[at]) - want); !(d <= limit) {
			t.Fatalf("%s transA=%v transB=%v %dx%dx%d alpha=%v beta=%v: C[%d,%d] = %v, want %v", s.Name, transA, transB, m, n, k, alpha, beta, i, j, c[at], want)
		}
	}
}

func testGemm[T Float](t *testing.T, sets []*Set[T]) {
	sizes := []int{0, 1, 2, 3, 5, 7, 8, 11, 12, 13, 16, 17, 23, 31, 32, 33, 48, 63, 65}
	if raceEnabled { // plain loops are slow under the race detector
		sizes = []int{0, 1, 3, 7, 12, 16, 33, 65}
	}
	for _, s := range sets {
		t.Run(s.Name, func(t *testing.T) {
			for flags := range 4 {
				transA, transB := flags&1 != 0, flags&2 != 0
				for _, m := range sizes {
					for q, n := range sizes {
						k := []int{0, 1, 2, 7, 19, 9}[(q+m+flags)%6]
						beta := T((m + n + q) % 3)
						checkProduct(t, s, transA, transB, m, n, k, 1-beta/4, beta/2, (m+q)%3)
					}
				}
				// Shapes of more than one block in each direction. A is read in place or, if its rows compete for the
				// same sets of the cache, copied.
				for q, shape := range [][3]int{{64, 100, 784}, {250, 40, 30}, {30, 520, 30}, {20, 30, 530}, {241, 257, 60}, {1, 600, 300},
					{250, 260, 256}, {300, 1, 513}} {
					checkProduct(t, s, transA, transB, shape[0], shape[1], shape[2], 0.5, T((q+flags)%2), q%2)
				}
			}
		})
	}
}

func TestGemmAgreesWithPlainLoops(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testGemm(t, choice().sets32) })
	t.Run("float64", func(t *testing.T) { testGemm(t, choice().sets64) })
}

// shapes lists the products of the workloads, the halves of C that each of two goroutines computes, and a textbook
// product.
var shapes = []struct {
	transA, transB bool
	m, n, k        int
}{
	{false, false, 1024, 1024, 1024},
	{false, false, 128, 100, 784},
	{false, false, 64, 100, 784},
	{false, false, 128, 784, 100},
	{false, false, 64, 784, 100},
	{true, false, 784, 100, 128},
	{true, false, 392, 100, 128},
	{true, false, 100, 784, 128},
	{true, false, 50, 784, 128},
	{false, true, 128, 100, 784},
	{false, true, 64, 100, 784},
	{false, false, 64, 512, 784},
	{false, false, 64, 256, 512},
	{true, false, 392, 512, 128},
	{true, false, 256, 256, 128},
	{false, true, 64, 512, 256},
}

func benchmarkGemm[T Float](b *testing.B, sets []*Set[T]) {
	for _, s := range shapes {
		for _, set := range sets {
			name := fmt.Sprintf("%dx%dx%d,%v,%v/%s", s.m, s.n, s.k, s.transA, s.transB, set.Name)
			b.Run(name, func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				ar, ac, br, bc := s.m, s.k, s.k, s.n
				if s.transA {
					ar, ac = ac, ar
				}
				if s.transB {
					br, bc = bc, br
				}
				x, y, z := matrix[T](r, ar, ac, ac), matrix[T](r, br, bc, bc), matrix[T](r, s.m, s.n, s.n)
				b.ReportAllocs()
				for b.Loop() {
					set.Gemm(s.transA, s.transB, s.m, s.n, s.k, 1, x, ac, y, bc, 0, z, s.n)
				}
				b.ReportMetric(2*float64(s.m*s.n*s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

func BenchmarkGemm32(b *testing.B) { benchmarkGemm(b, choice().sets32) }
func BenchmarkGemm64(b *testing.B) { benchmarkGemm(b, choice().sets64) }
