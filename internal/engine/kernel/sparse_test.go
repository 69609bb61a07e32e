package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sparseCase is a product in which one operand is almost all zeros.
type sparseCase[T Float] struct {
	zeros   Zeros
	transA  bool
	m, n, k int
	lda     int
	ldb     int
	ldc     int
	a, b, c []T
}

// newSparseCase returns a product whose sparse operand has one non-zero value in share values. C is filled with 7.
func newSparseCase[T Float](r *rand.Rand, zeros Zeros, transA bool, m, n, k, share, pad int) *sparseCase[T] {
	x := &sparseCase[T]{zeros: zeros, transA: transA, m: m, n: n, k: k}
	rows, columns := m, k
	if transA {
		rows, columns = k, m
	}
	x.lda, x.ldb, x.ldc = columns+pad, n+2*pad, n+pad
	x.a, x.b = matrix[T](r, rows, columns, x.lda), matrix[T](r, k, n, x.ldb)
	thin, ld, lines, length := x.a, x.lda, rows, columns
	if zeros == ZerosInB {
		thin, ld, lines, length = x.b, x.ldb, k, n
	}
	for i := range lines {
		for j := range length {
			if r.IntN(share) > 0 {
				thin[i*ld+j] = T(math.Copysign(0, r.NormFloat64()))
			}
		}
	}
	x.c = make([]T, m*x.ldc)
	for i := range x.c {
		x.c[i] = 7
	}
	return x
}

// check fails unless SparseGemm has the same bits as Gemm if used is true, and leaves C unchanged otherwise.
func (x *sparseCase[T]) check(t *testing.T, s *Set[T], used bool) {
	t.Helper()
	want := append([]T(nil), x.c...)
	s.Gemm(x.transA, false, x.m, x.n, x.k, 1, x.a, x.lda, x.b, x.ldb, 0, want, x.ldc)
	unchanged := append([]T(nil), x.c...)
	x.checkPlaces(t, s)
	done := s.SparseGemm(x.zeros, Kept{}, x.transA, false, x.m, x.n, x.k, x.a, x.lda, x.b, x.ldb, x.c, x.ldc)
	if done != used {
		t.Fatalf("%s: zeros=%d transA=%v %dx%dx%d: computed %v, want %v", s.Name, x.zeros, x.transA, x.m, x.n, x.k, done, used)
	}
	if !used {
		want = unchanged
	}
	for i, v := range x.c {
		if math.Float64bits(float64(v)) != math.Float64bits(float64(want[i])) && (v == v || want[i] == want[i]) {
			t.Fatalf("%s: zeros=%d transA=%v %dx%dx%d: C[%d,%d] = %v, want %v", s.Name, x.zeros, x.transA, x.m, x.n, x.k, i/x.ldc, i%x.ldc, v, want[i])
		}
	}
}

// checkPlaces fails unless the product has the same bits if the places of the values are known. The places are those of a larger
// matrix, and one place in eight has a value of 0.
func (x *sparseCase[T]) checkPlaces(t *testing.T, s *Set[T]) {
	t.Helper()
	thin, ld, lines, length := x.a, x.lda, x.m, x.k
	switch {
	case x.zeros == ZerosInB:
		thin, ld, lines, length = x.b, x.ldb, x.k, x.n
	case x.transA:
		lines, length = x.k, x.m
	}
	kept := Kept{Most: length + 2, First: 3}
	for i := range lines {
		list := []int32{2}
		for j := range length {
			if thin[i*ld+j] != 0 || (i+j)%8 == 0 {
				list = append(list, int32(3+j))
			}
		}
		list = append(list, int32(3+length))
		kept.Counts = append(kept.Counts, int32(len(list)))
		kept.Columns = append(append(kept.Columns, list...), make([]int32, kept.Most-len(list))...)
	}
	want, got := append([]T(nil), x.c...), append([]T(nil), x.c...)
	found := s.SparseGemm(x.zeros, Kept{}, x.transA, false, x.m, x.n, x.k, x.a, x.lda, x.b, x.ldb, want, x.ldc)
	known := s.SparseGemm(x.zeros, kept, x.transA, false, x.m, x.n, x.k, x.a, x.lda, x.b, x.ldb, got, x.ldc)
	if found != known {
		t.Fatalf("%s: zeros=%d transA=%v %dx%dx%d: computed %v with known places, want %v", s.Name, x.zeros, x.transA, x.m, x.n, x.k, known, found)
	}
	for i := range got {
		if math.Float64bits(float64(got[i])) != math.Float64bits(float64(want[i])) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: zeros=%d transA=%v %dx%dx%d: C[%d] = %v with known places, want %v", s.Name, x.zeros, x.transA, x.m, x.n, x.k, i, got[i], want[i])
		}
	}
}

var sparseKinds = []struct {
	zeros  Zeros
	transA bool
}{{ZerosInA, false}, {ZerosInA, true}, {ZerosInB, true}}

// ownSets returns the sets without those whose products a library computes, because the library adds in another order.
func ownSets[T Float](sets []*Set[T]) []*Set[T] {
	if choice().blas != nil {
		return sets[2:]
	}
	return sets
}

func testSparse[T Float](t *testing.T, sets []*Set[T]) {
	shapes := [][3]int{{1, 1, 300}, {5, 33, 40}, {33, 70, 300}, {70, 40, 513}, {40, 64, 1000}, {300, 20, 260}, {3, 600, 2000}}
	if raceEnabled { // comparing the bits of large products is slow under the race detector
		shapes = shapes[:4]
	}
	for _, s := range ownSets(sets) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, kind := range sparseKinds {
			for _, shape := range shapes {
				m, n, k := shape[0], shape[1], shape[2]
				newSparseCase[T](r, kind.zeros, kind.transA, m, n, k, 40, 0).check(t, s, true)
				newSparseCase[T](r, kind.zeros, kind.transA, m, n, k, 200, 3).check(t, s, true)
			}
			newSparseCase[T](r, kind.zeros, kind.transA, 50, 60, 70, 2, 0).check(t, s, false)
			newSparseCase[T](r, kind.zeros, kind.transA, 50, 60, 70, 1, 1).check(t, s, false)
			newSparseCase[T](r, kind.zeros, kind.transA, 50, 60, 70, math.MaxInt, 1).check(t, s, true) // the sparse operand has only zeros
		}
	}
}

func TestAProductWithoutZerosHasTheBitsOfTheWholeOne(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testSparse(t, choice().sets32) })
	t.Run("float64", func(t *testing.T) { testSparse(t, choice().sets64) })
}

// Infinity and NaN in the sparse operand are ordinary values. In the other operand they are multiplied by zeros, which
// gives NaN, so the complete product must be computed.
func TestAProductWithoutZerosKeepsInfinityAndNaN(t *testing.T) {
	for _, s := range ownSets(choice().sets32) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, kind := range sparseKinds {
			for _, v := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, 1e-44} {
				x := newSparseCase[float32](r, kind.zeros, kind.transA, 20, 30, 400, 60, 1)
				thin := x.a
				if kind.zeros == ZerosInB {
					thin = x.b
				}
				thin[7] = v
				x.check(t, s, true)
				x = newSparseCase[float32](r, kind.zeros, kind.transA, 20, 30, 400, 60, 1)
				full, ld := x.b, x.ldb
				if kind.zeros == ZerosInB {
					full, ld = x.a, x.lda
				}
				full[11*ld+3] = v
				x.check(t, s, v-v == 0)
			}
		}
	}
}

// The operands give sums that cancel, and products below the smallest normal number.
func TestAProductWithoutZerosRoundsLikeTheWholeOne(t *testing.T) {
	for _, s := range ownSets(choice().sets32) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, kind := range sparseKinds {
			x := newSparseCase[float32](r, kind.zeros, kind.transA, 40, 48, 700, 20, 0)
			for _, operand := range [][]float32{x.a, x.b} {
				for i, v := range operand {
					switch {
					case v == 0:
					case i%3 == 0:
						operand[i] = float32(math.Copysign(1, float64(v)))
					case i%3 == 1:
						operand[i] = v * 1e-20
					}
				}
			}
			x.check(t, s, true)
		}
	}
}

func TestSparseGemmAllocatesNothing(t *testing.T) {
	for _, s := range choice().sets32 {
		for _, kind := range sparseKinds {
			x := newSparseCase[float32](rand.New(rand.NewPCG(1, 2)), kind.zeros, kind.transA, 64, 96, 320, 50, 0)
			run := func() {
				s.SparseGemm(x.zeros, Kept{}, x.transA, false, x.m, x.n, x.k, x.a, x.lda, x.b, x.ldb, x.c, x.ldc)
			}
			run()
			if n := testing.AllocsPerRun(10, run); n != 0 {
				t.Errorf("%s: zeros=%d transA=%v: %v allocations", s.Name, kind.zeros, kind.transA, n)
			}
		}
	}
}

// SparseGemm adds contiguous rows. A transposed B has none, and neither has the sparse operand B with an A that is not
// transposed.
func TestSparseGemmLeavesProductsOfColumnsToGemm(t *testing.T) {
	x, c := make([]float32, 64), []float32{1, 2, 3, 4}
	for _, s := range choice().sets32 {
		if s.SparseGemm(ZerosInA, Kept{}, false, true, 2, 2, 32, x, 32, x, 32, c, 2) || s.SparseGemm(ZerosInB, Kept{}, false, false, 2, 2, 32, x, 32, x, 2, c, 2) ||
			s.SparseGemm(NoZeros, Kept{}, true, false, 2, 2, 32, x, 2, x, 2, c, 2) || fmt.Sprint(c) != "[1 2 3 4]" {
			t.Errorf("%s: computed, C = %v", s.Name, c)
		}
	}
}

// BenchmarkSparseGemm computes the products of one step of a sparse auto-encoder, for half of its units.
func BenchmarkSparseGemm(b *testing.B) {
	for _, kind := range sparseKinds {
		m, n, k := 1024, 512, 4096
		switch {
		case kind.zeros == ZerosInB:
			m, n, k = 512, 4096, 1024
		case kind.transA:
			m, n, k = 4096, 512, 1024
		}
		b.Run(fmt.Sprintf("%dx%dx%d,%v", m, n, k, kind.transA), func(b *testing.B) {
			x := newSparseCase[float32](rand.New(rand.NewPCG(1, 2)), kind.zeros, kind.transA, m, n, k, 256, 0)
			for b.Loop() {
				Float32().SparseGemm(x.zeros, Kept{}, x.transA, false, m, n, k, x.a, x.lda, x.b, x.ldb, x.c, x.ldc)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/product")
		})
	}
}
