package kernel

import (
	"fmt"

	"golang.org/x/sys/cpu"
)

func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

func hasAVX512() bool {
	return hasAVX2() && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL
}

// Up to avx512BLASFrom and avx2BLASFrom multiplications, the assembly is as fast as OpenBLAS 0.3.21 or up to 1.3 times
// faster. Above, it is up to a tenth slower (measured on one core each of two generations of Xeon, with the other core
// busy). If one side of a product is at most [tiledThin], such as a batch, the assembly is never slower, for any size of
// the weight.
const (
	avx512BLASFrom = 1600 * 1600 * 1600
	avx2BLASFrom   = 1100 * 1100 * 1100
)

var (
	avx512Backend = assembled("avx512", &tiles32AVX512, &tiles64AVX512, assignAVX512, &stepsAVX512, choose_avx512, avx512BLASFrom, peakAVX512)
	avx2Backend   = assembled("avx2", &tiles32AVX2, &tiles64AVX2, assignAVX2, &stepsAVX2, nil, avx2BLASFrom, peakAVX2)
)

// hasAssembly reports whether this package has assembly for the machine, even if TESSERA_SIMD switches it off.
func hasAssembly() bool { return hasAVX2() }

// simdBackends returns the instruction sets that the CPU has, with the best one first. The value of TESSERA_SIMD,
// limit, may exclude the best ones. It also returns the reason why no better one is used.
func simdBackends(limit string) (s selection) {
	switch limit {
	case "", "avx512", "avx2":
	case "none":
		return selection{note: "switched off by TESSERA_SIMD=none"}
	default:
		s.err = fmt.Errorf("TESSERA_SIMD=%s: unknown instruction set (want avx512, avx2 or none); set one of them, or unset the variable", limit)
	}
	if !hasAVX2() {
		s.note = "the CPU has no AVX2, FMA and BMI2"
		return s
	}
	switch {
	case limit == "avx2":
		s.note = "limited by TESSERA_SIMD=avx2"
	case hasAVX512():
		s.backends = append(s.backends, avx512Backend)
	default:
		s.note = "the CPU has no AVX-512 F, BW, DQ and VL"
	}
	s.backends = append(s.backends, avx2Backend)
	return s
}
