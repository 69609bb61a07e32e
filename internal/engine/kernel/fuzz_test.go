package kernel

import (
	"math/rand/v2"
	"testing"
)

func FuzzKernelsAgreeWithThePortableOnes(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint8(0))
	f.Add(uint64(2), uint16(257), uint8(3))
	f.Add(uint64(3), uint16(15), uint8(15))
	reference := invocations(portable[float32]())
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, offset uint8) {
		for _, set := range elementwiseSets() {
			for i, k := range invocations(set) {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				compareWithPortable(t, set.Name, k, reference[i], r, int(n%2000), int(offset%16), true)
			}
		}
	})
}

func FuzzGemmAgreesWithPlainLoops(f *testing.F) {
	f.Add(uint8(1), uint8(2), uint8(3), uint8(0))
	f.Add(uint8(64), uint8(100), uint8(78), uint8(7))
	f.Add(uint8(133), uint8(255), uint8(255), uint8(90))
	f.Fuzz(func(t *testing.T, m, n, k, flags uint8) {
		transA, transB, beta, pad := flags&1 != 0, flags&2 != 0, flags>>2&3, int(flags>>4)
		for _, set := range choice().sets32 {
			checkProduct(t, set, transA, transB, int(m), int(n), int(k), 0.75, float32(beta)/2, pad)
		}
		for _, set := range choice().sets64 {
			checkProduct(t, set, transA, transB, int(m), int(n), int(k), 0.75, float64(beta)/2, pad)
		}
	})
}
