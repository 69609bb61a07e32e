package kernel

import "fmt"

// Every processor with arm64 has NEON. Up to which size its products are faster than those of OpenBLAS has not been measured: a
// library that TESSERA_BLAS names computes those that it computes beside AVX2.
var neonBackend = assembled("neon", &tiles32NEON, &tiles64NEON, assignNEON, &stepsNEON, choose_neon, 1100*1100*1100, peakNEON)

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
