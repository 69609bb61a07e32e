package random

import (
	"math"
	"math/bits"
)

// PCG is the generator PCG-DXSM of rand.PCG with the same numbers. Loops over its numbers are written here, where the state stays
// in registers: a call through rand.Rand takes several times as long as a number.
type PCG struct{ hi, lo uint64 }

// Numbers returns the numbers on which [Stream] with the same arguments is based.
func Numbers(seed uint64, path string, counter uint64) *PCG {
	hi, lo := seeds(seed, path, counter)
	return &PCG{hi, lo}
}

// Uint64 implements rand.Source.
func (p *PCG) Uint64() uint64 {
	p.hi, p.lo = next(p.hi, p.lo)
	return mix(p.hi, p.lo)
}

// next returns the state after a state.
func next(hi, lo uint64) (uint64, uint64) {
	const (
		factorHi, factorLo = 2549297995355413924, 4865540595714422341
		summandHi          = 6364136223846793005
		summandLo          = 1442695040888963407
	)
	h, l := bits.Mul64(lo, factorLo)
	h += hi*factorLo + lo*factorHi
	l, carry := bits.Add64(l, summandLo, 0)
	h, _ = bits.Add64(h, summandHi, carry)
	return h, l
}

// mix returns the number of a state.
func mix(hi, lo uint64) uint64 {
	const factor = 0xda942042e4dd58b5
	hi ^= hi >> 32
	hi *= factor
	hi ^= hi >> 48
	return hi * (lo | 1)
}

// Choose sets each element of dst to below if the next number in [0,1), as rand.Float64 draws it, is less than rate, else to
// above. It has no branch that a processor would have to predict.
func (p *PCG) Choose(dst []float32, rate float64, below, above float32) {
	const ones = 1<<53 - 1 // a number in [0,1) is 53 bits, divided by 2^53
	values, bound := [2]float32{above, below}, uint64(math.Ceil(rate*(ones+1)))
	hi, lo := p.hi, p.lo
	for i := range dst {
		hi, lo = next(hi, lo)
		dst[i] = values[(mix(hi, lo)&ones-bound)>>63] // the sign bit is 1 if the difference is negative
	}
	p.hi, p.lo = hi, lo
}
