package kernel

import (
	"math"
	"math/bits"
)

// PCG is the generator PCG-DXSM (O'Neill) of rand.PCG, with the same numbers. Loops over its numbers are written here, where the
// state stays in registers: a call through rand.Rand takes several times as long as a number.
type PCG struct{ hi, lo uint64 }

// NewPCG returns the generator that rand.NewPCG returns for the same arguments.
func NewPCG(hi, lo uint64) *PCG { return &PCG{hi, lo} }

// Uint64 implements rand.Source.
func (p *PCG) Uint64() uint64 {
	p.hi, p.lo = next(p.hi, p.lo)
	return mix(p.hi, p.lo)
}

// The state after a state is state*factor + summand, in 128 bits.
const (
	factorHi, factorLo   = 2549297995355413924, 4865540595714422341
	summandHi, summandLo = 6364136223846793005, 1442695040888963407
)

func next(hi, lo uint64) (uint64, uint64) {
	return step(hi, lo, factorHi, factorLo, summandHi, summandLo)
}

// step returns x*factor + summand.
func step(hi, lo, factorHi, factorLo, summandHi, summandLo uint64) (uint64, uint64) {
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
// above. The result does not depend on the instruction set.
func (p *PCG) Choose(dst []float32, rate float64, below, above float32) {
	p.choose(dst, rate, below, above, simd().backends[0].choose)
}

// chooser sets the elements of dst, len(dst)/stride*stride of them, by the numbers after those of the lanes. It leaves the states of the last
// numbers in the lanes. The array has the upper and the lower halves of the states of consecutive numbers, followed by the factor
// and the summand of a step over all lanes.
type chooser = func(dst []float32, lanes *[2*stride + 4]uint64, bound uint64, below, above float32)

// stride is the number of lanes.
const stride = 16

// overLanes are the factor and the summand of stride steps at once.
var overLanes = func() (s [4]uint64) {
	s[1] = 1
	for range stride {
		s[0], s[1] = step(s[0], s[1], factorHi, factorLo, 0, 0)
		s[2], s[3] = next(s[2], s[3])
	}
	return s
}()

// choose is Choose with the kernel of an instruction set, or nil.
func (p *PCG) choose(dst []float32, rate float64, below, above float32, kernel chooser) {
	bound := uint64(math.Ceil(rate * (ones + 1)))
	if kernel != nil && len(dst) >= 2*stride {
		var lanes [2*stride + 4]uint64
		first := *p
		for i := range stride {
			first.hi, first.lo = next(first.hi, first.lo)
			lanes[i], lanes[stride+i] = first.hi, first.lo
		}
		copy(lanes[2*stride:], overLanes[:])
		p.chooseEach(dst[:stride], bound, below, above)
		kernel(dst[stride:], &lanes, bound, below, above)
		p.hi, p.lo = lanes[stride-1], lanes[2*stride-1]
		dst = dst[len(dst)/stride*stride:]
	}
	p.chooseEach(dst, bound, below, above)
}

const ones = 1<<53 - 1 // a number in [0,1) is 53 bits, divided by 2^53

// chooseEach compares numbers with a bound. It has no branch that a processor would have to predict.
func (p *PCG) chooseEach(dst []float32, bound uint64, below, above float32) {
	values := [2]float32{above, below}
	hi, lo := p.hi, p.lo
	for i := range dst {
		hi, lo = next(hi, lo)
		dst[i] = values[(mix(hi, lo)&ones-bound)>>63] // the sign bit is 1 if the difference is negative
	}
	p.hi, p.lo = hi, lo
}
