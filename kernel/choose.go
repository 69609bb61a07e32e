package kernel

import (
	"cmp"
	"fmt"
	"os"
	"sync"
)

// backend is the kernels of one instruction set.
type backend struct {
	name  string
	set32 func() *Set[float32]
	set64 func() *Set[float64]
	steps *stepSet
	// A product with at least this number of multiplications is faster in OpenBLAS, unless one of its sides is thin.
	blasFrom, thin int
}

var portableBackend = backend{"portable", portable[float32], portable[float64], &portableSteps, 1 << 9, 0}

// chosen is the selection, made once: the usable back ends, the best first, and the BLAS if there is one.
type chosen struct {
	selection
	sets32   []*Set[float32]
	sets64   []*Set[float64]
	blas     *library
	blasNote string // why there is no BLAS
}

// selection is the usable instruction sets, the best first.
type selection struct {
	backends []backend
	note     string // why there is no better one
	err      error  // what is wrong with TESSERA_SIMD
}

// simd selects the instruction set only, so callers without BLAS do not load a library.
var simd = sync.OnceValue(func() selection {
	s := simdBackends(os.Getenv("TESSERA_SIMD"))
	s.backends = append(s.backends, portableBackend)
	return s
})

var choice = sync.OnceValue(func() *chosen { return choose(simd(), os.Getenv("TESSERA_BLAS")) })

// choose opens a BLAS if wanted names one, or if nothing is named and this package has no assembly for the machine.
func choose(s selection, wanted string) *chosen {
	c := &chosen{selection: s}
	for _, b := range c.backends {
		c.sets32 = append(c.sets32, b.set32())
		c.sets64 = append(c.sets64, b.set64())
	}
	switch {
	case wanted == "none":
		c.blasNote = "switched off by TESSERA_BLAS=none"
		return c
	case wanted == "" && hasAssembly():
		c.blasNote = "not needed: this machine has kernels in assembly; TESSERA_BLAS names a library to use beside them"
		return c
	}
	var err error
	if c.blas, err = openBLAS(wanted); err != nil {
		c.blas, c.blasNote = nil, err.Error()
		if wanted != "" {
			c.err = cmp.Or(c.err, fmt.Errorf("TESSERA_BLAS=%s: %w; name an OpenBLAS library, or unset the variable", wanted, err))
		}
		return c
	}
	c.sets32 = withBLAS(c.sets32, c.blas.gemm32, c.backends[0])
	c.sets64 = withBLAS(c.sets64, c.blas.gemm64, c.backends[0])
	return c
}

// Err is the error of TESSERA_BLAS or TESSERA_SIMD: a library that cannot be used, or an unknown instruction set. The
// kernels compute without it, but a program whose user asked for it should stop.
func Err() error { return choice().err }

// withBLAS puts two sets before the others: the best one with its large products in BLAS, and BLAS for all products.
func withBLAS[T Float](sets []*Set[T], blas Gemm[T], of backend) []*Set[T] {
	best, pure := *sets[0], *sets[0]
	small := best.Gemm
	best.Name = "openblas+" + best.Name
	best.Gemm = func(transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
		multiply := blas
		if m*n*k < of.blasFrom || min(m, n, k) <= of.thin {
			multiply = small
		}
		multiply(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	}
	pure.Name, pure.Gemm = "openblas", blas
	return append([]*Set[T]{&best, &pure}, sets...)
}

// elementwise32 is the best set, independent of BLAS.
var elementwise32 = sync.OnceValue(func() *Set[float32] {
	return simd().backends[0].set32()
})

// steps is the best optimizer steps.
func steps() *stepSet {
	return simd().backends[0].steps
}

// Float32 returns the best kernels of this machine in float32. See [Info] for how they are chosen.
func Float32() *Set[float32] { return choice().sets32[0] }

// Float64 returns the best kernels of this machine in float64. See [Info] for how they are chosen.
func Float64() *Set[float64] { return choice().sets64[0] }
