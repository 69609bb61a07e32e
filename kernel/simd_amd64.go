package kernel

import (
	"fmt"

	"golang.org/x/sys/cpu"
)

func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

func hasAVX512() bool {
	return hasAVX2() && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
}

// Up to these numbers of multiplications the assembly is as fast as OpenBLAS 0.3.21 or up to 1.3 times faster; beyond,
// up to a tenth slower (one core each of two generations of Xeon, the other one busy too). tiledThin: with a batch as one
// side it is never slower, however large the weight.
const (
	avx512BLASFrom = 1600 * 1600 * 1600
	avx2BLASFrom   = 1100 * 1100 * 1100
	tiledThin      = 128
)

var (
	avx512Backend = backend{"avx512", set32AVX512, set64AVX512, &stepsAVX512, avx512BLASFrom, tiledThin}
	avx2Backend   = backend{"avx2", set32AVX2, set64AVX2, &stepsAVX2, avx2BLASFrom, tiledThin}
)

// simdBackends lists the instruction sets that the CPU has and that limit (the value of TESSERA_SIMD) allows, the best
// first, and says why there is no better one.
func simdBackends(limit string) (backends []backend, note string) {
	switch limit {
	case "", "avx512", "avx2":
	case "none":
		return nil, "switched off by TESSERA_SIMD=none"
	default:
		note = fmt.Sprintf("TESSERA_SIMD=%s is ignored: use avx512, avx2 or none", limit)
	}
	switch {
	case limit == "avx2":
		note = "limited by TESSERA_SIMD=avx2"
	case hasAVX512():
		backends = append(backends, avx512Backend)
	case note == "":
		note = "the CPU has no AVX-512 F, BW, DQ and VL"
	}
	if hasAVX2() {
		return append(backends, avx2Backend), note
	}
	return nil, "the CPU has no AVX2, FMA and BMI2"
}

func set32AVX512() *Set[float32] {
	s := portable[float32]()
	s.Name, s.Gemm = "avx512", tiles32AVX512.gemm
	assignAVX512(s)
	return s
}

func set64AVX512() *Set[float64] {
	s := portable[float64]()
	s.Name, s.Gemm = "avx512", tiles64AVX512.gemm
	return s
}

func set32AVX2() *Set[float32] {
	s := portable[float32]()
	s.Name, s.Gemm = "avx2", tiles32AVX2.gemm
	assignAVX2(s)
	return s
}

func set64AVX2() *Set[float64] {
	s := portable[float64]()
	s.Name, s.Gemm = "avx2", tiles64AVX2.gemm
	return s
}
