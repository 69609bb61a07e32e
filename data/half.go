package data

import "math"

// fromHalf returns the value of an IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero, or subnormal: fraction * 2^-24, which is exact
		v := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	case 0x1f: // infinite, or no number
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	const rebias = 127 - 15
	return math.Float32frombits(sign | (exponent+rebias)<<23 | fraction<<13)
}

// fromBrain returns the value of a bfloat16: the upper half of a float32.
func fromBrain(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }
