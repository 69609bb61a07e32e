package kernel

import "fmt"

// Every processor with arm64 has NEON. Up to which size its products are faster than those of OpenBLAS has not been measured: a
// library that TESSERA_BLAS names computes those that it computes beside AVX2.
var neonBackend = backend{"neon", set32NEON, set64NEON, &stepsNEON, choose_neon, tiledBLASFrom, tiledThin, peakNEON}

const (
	tiledBLASFrom = 1100 * 1100 * 1100
	tiledThin     = 128
)

// hasAssembly reports whether this package has assembly for the machine, even if TESSERA_SIMD switches it off.
func hasAssembly() bool { return true }

// simdBackends returns the instruction sets of the CPU. The value of TESSERA_SIMD, limit, may exclude them.
func simdBackends(limit string) (s selection) {
	switch limit {
	case "", "neon":
	case "none":
		return selection{note: "switched off by TESSERA_SIMD=none"}
	default:
		s.err = fmt.Errorf("TESSERA_SIMD=%s: unknown instruction set (want neon or none); set one of them, or unset the variable", limit)
	}
	s.backends = []backend{neonBackend}
	return s
}

func set32NEON() *Set[float32] {
	s := portable[float32]()
	s.Name, s.Gemm = "neon", tiles32NEON.gemm
	assignNEON(s)
	s.SparseGemm = tiles32NEON.sparse(s, s.AddScaled)
	return s
}

func set64NEON() *Set[float64] {
	s := portable[float64]()
	s.Name, s.Gemm = "neon", tiles64NEON.gemm
	s.SparseGemm = tiles64NEON.sparse(s, addScaledFMA)
	return s
}
