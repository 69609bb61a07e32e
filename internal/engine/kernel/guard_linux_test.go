package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tessera/internal/fatal"
)

// guarded is memory between two inaccessible pages: a read or write outside of the memory ends the test process.
type guarded[T Float] struct{ elements []T }

func newGuarded[T Float](t *testing.T, pages int) guarded[T] {
	t.Helper()
	page := unix.Getpagesize()
	memory, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	fatal.If(t, err)
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	for _, guard := range [][]byte{memory[:page], memory[(pages+1)*page:]} {
		fatal.If(t, unix.Mprotect(guard, unix.PROT_NONE))
	}
	inner := memory[page : (pages+1)*page]
	return guarded[T]{unsafe.Slice((*T)(unsafe.Pointer(&inner[0])), len(inner)/int(unsafe.Sizeof(*new(T))))}
}

// slice returns n elements that end at the upper guard page if upper is true, and that start at the lower one
// otherwise.
func (g guarded[T]) slice(n int, upper bool) []T {
	if upper {
		return g.elements[len(g.elements)-n:]
	}
	return g.elements[:n:n]
}

func TestKernelsStayInsideTheirSlices(t *testing.T) {
	dst := newGuarded[float32](t, 1)
	operands := [3]guarded[float32]{newGuarded[float32](t, 1), newGuarded[float32](t, 1), newGuarded[float32](t, 1)}
	for _, set := range elementwiseSets() {
		for _, k := range invocations(set) {
			for n := range 140 {
				for _, upper := range []bool{false, true} {
					var x [3][]float32
					for i := range x {
						x[i] = operands[i].slice(n, upper)
					}
					size := n
					if k.reduces {
						size = 1
					}
					k.run(dst.slice(size, upper), x, 1, 2)
				}
			}
		}
	}
}

func TestBytesStayInsideTheirSlices(t *testing.T) {
	dst, src := newGuarded[float32](t, 1), newGuarded[float32](t, 1)
	all := unsafe.Slice((*uint8)(unsafe.Pointer(&src.elements[0])), 4*len(src.elements))
	for _, set := range elementwiseSets() {
		for n := range 140 {
			set.FromBytes(dst.slice(n, true), all[len(all)-n:])
			set.FromBytes(dst.slice(n, false), all[:n])
		}
	}
}

func TestStepsStayInsideTheirSlices(t *testing.T) {
	var x [4]guarded[float32]
	for i := range x {
		x[i] = newGuarded[float32](t, 1)
	}
	for _, s := range stepSets() {
		for n := range 140 {
			for _, upper := range []bool{false, true} {
				for _, rule := range rules {
					rule.run(s, x[0].slice(n, upper), x[1].slice(n, upper), x[2].slice(n, upper), x[3].slice(n, upper), 1)
				}
			}
		}
	}
}

func testGemmInside[T Float](t *testing.T, sets []*Set[T]) {
	a, b, c := newGuarded[T](t, 16), newGuarded[T](t, 16), newGuarded[T](t, 16)
	r := rand.New(rand.NewPCG(5, 6))
	for _, set := range sets {
		for range 300 {
			m, n, k := 1+r.IntN(70), 1+r.IntN(70), 1+r.IntN(70)
			transA, transB, upper := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
			lda, ldb, ldc := k+r.IntN(3), n+r.IntN(3), n+r.IntN(3)
			rowsA, rowsB, lastA, lastB := m, k, k, n
			if transA {
				lda, rowsA, lastA = m+r.IntN(3), k, m
			}
			if transB {
				ldb, rowsB, lastB = k+r.IntN(3), n, k
			}
			x := a.slice((rowsA-1)*lda+lastA, upper)
			y := b.slice((rowsB-1)*ldb+lastB, upper)
			z := c.slice((m-1)*ldc+n, upper)
			for i := range z {
				z[i] = T(math.NaN())
			}
			set.Gemm(transA, transB, m, n, k, 1, x, lda, y, ldb, 0, z, ldc)
			for i, v := range z {
				if outside := i%ldc >= n; outside != (v != v) {
					t.Fatalf("%s %dx%dx%d %v %v: element %d of C is %v", set.Name, m, n, k, transA, transB, i, v)
				}
			}
		}
	}
}

func TestGemmStaysInsideItsMatrices(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testGemmInside(t, choice().sets32) })
	t.Run("float64", func(t *testing.T) { testGemmInside(t, choice().sets64) })
}
