package serve

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// powers are the powers of ten that float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
	1e19, 1e20, 1e21, 1e22}

// tens are powers of ten as integers.
var tens = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}

// inverses are the float64 nearest to their inverses.
var inverses = [...]float64{1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16,
	1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22}

// number reads a number and rounds it to the nearest float32, as strconv.ParseFloat does.
//
// A number of at most 19 digits is computed in float64 as its digits times a power of ten. The digits, the power and the product
// are rounded, so that the error is at most three units in the last place. Rounding that to float32 is correct unless a boundary between two float32 is as near; then, and for all
// other numbers, strconv decides.
func (c *cursor) number() (float32, error) {
	b, begin, i := c.b, c.i, c.i
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	digits := i
	mantissa, i := digitsAt(b, i, 0)
	count := i - digits
	if count == 0 || count > 1 && b[digits] == '0' {
		return 0, c.bad("a number")
	}
	exponent := 0
	if i < len(b) && b[i] == '.' {
		i++
		fraction := i
		mantissa, i = digitsAt(b, i, mantissa)
		exponent = fraction - i
		count -= exponent
		if exponent == 0 {
			c.i = i
			return 0, c.bad("a digit")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		e, end := exponentAt(b, i+1)
		if end < 0 {
			c.i = i
			return 0, c.bad("an exponent")
		}
		exponent, i = exponent+e, end
	}
	c.i = i
	v, ok := nearest(mantissa, exponent)
	if !ok || count > 19 {
		return exact(b[begin:i], begin)
	}
	if negative {
		v = -v
	}
	return v, nil
}

// exact leaves the number at byte at to strconv.
func exact(text []byte, at int) (float32, error) {
	v, err := strconv.ParseFloat(string(text), 32)
	if err != nil {
		return 0, fmt.Errorf("JSON: byte %d: %w", at, errRange)
	}
	return float32(v), nil
}

// digitsAt appends the decimal digits at b[i:] to n, modulo 2^64, and returns where they end.
func digitsAt(b []byte, i int, n uint64) (uint64, int) {
	for len(b)-i >= 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if x&0xf0f0f0f0f0f0f0f0 != 0x3030303030303030 || (x+0x0606060606060606)&0xf0f0f0f0f0f0f0f0 != 0x3030303030303030 {
			break
		}
		n = 100000000*n + eight(x)
		i += 8
	}
	for i < len(b) && b[i]-'0' <= 9 {
		n = 10*n + uint64(b[i]-'0')
		i++
	}
	return n, i
}

// eight returns the number of eight decimal digits, the first of which is the lowest byte; a byte of 0 is a digit 0. Neighbours are
// joined to pairs, to fours and to the whole. Source: Lemire, "SWAR explained: parsing eight digits", 2022.
func eight(x uint64) uint64 {
	x = (x & 0x0f0f0f0f0f0f0f0f) * (10<<8 + 1) >> 8
	x = (x & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	return (x & 0x0000ffff0000ffff) * (10000<<32 + 1) >> 32
}

// exponentAt reads the digits of an exponent with its sign. It returns where they end, -1 without digits.
func exponentAt(b []byte, i int) (exponent, end int) {
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	begin := i
	for i < len(b) && b[i]-'0' <= 9 {
		exponent = min(10*exponent+int(b[i]-'0'), 1<<20) // larger ones overflow or are 0 in any case; strconv tells which
		i++
	}
	if i == begin {
		return 0, -1
	}
	if negative {
		exponent = -exponent
	}
	return exponent, i
}

// longest is how many bytes fraction reads.
const longest = 3 + 16

// fraction reads a number between -1 and 1 with at most 15 digits behind its point, as [cursor.number] does, and returns where it
// ends: at a comma or a bracket. It returns 0 for others, which it leaves to number. Most numbers of images are such fractions;
// their lengths are unpredictable, so the digits are read without a branch for each.
func fraction(b []byte, i int) (v float32, end int) {
	if len(b)-i < longest {
		return 0, 0
	}
	sign := uint32(0)
	if b[i] == '-' {
		sign = 1 << 31
		i++
	}
	if binary.LittleEndian.Uint16(b[i:]) != '0'|'.'<<8 {
		return 0, 0
	}
	i += 2
	x := binary.LittleEndian.Uint64(b[i:])
	count := digits(x)
	n := eight(x << (64 - 8*count))
	if count == 8 {
		y := binary.LittleEndian.Uint64(b[i+8:])
		more := digits(y)
		n = n*tens[more&7] + eight(y<<(64-8*more))
		count += more
	}
	end = i + int(count)
	exact := float64(int64(n)) * inverses[count]
	if n == 0 || count == 16 || !rounds(exact) || b[end] != ',' && b[end] != ']' {
		return 0, 0
	}
	return math.Float32frombits(math.Float32bits(float32(exact)) | sign), end
}

// digits returns how many of the eight bytes of x are decimal digits, from the lowest to the first that is none.
func digits(x uint64) uint {
	x ^= 0x3030303030303030                                     // the value of a digit, at least 10 of another byte
	others := (x + 0x7676767676767676 | x) & 0x8080808080808080 // the lowest bit marks the first byte that is no digit
	return uint(bits.TrailingZeros64(others)) >> 3
}

// nearest returns the float32 nearest to mantissa·10^exponent, and whether it is certain.
func nearest(mantissa uint64, exponent int) (float32, bool) {
	if mantissa == 0 {
		return 0, true
	}
	v := float64(mantissa)
	switch {
	case exponent < -22 || exponent > 22:
		return 0, false
	case exponent < 0:
		v *= inverses[-exponent] // three times as fast as a division
	default:
		v *= powers[exponent]
	}
	return float32(v), rounds(v)
}

// rounds reports whether v, which is wrong by at most three units in the last place, rounds to the same float32 as what it
// approximates.
func rounds(v float64) bool {
	const half = 1 << 28 // of the 29 bits that float64 has more
	below := math.Float64bits(v) & (1<<29 - 1)
	return below-half+4 > 8 && v >= 0x1p-126 && v <= 0x1p127
}

// appendNumber appends a finite number, with as few digits as identify it, in the format of encoding/json.
func appendNumber(dst []byte, v float32) []byte {
	if size := float32(math.Abs(float64(v))); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, float64(v), 'e', -1, 32)
	}
	return strconv.AppendFloat(dst, float64(v), 'f', -1, 32)
}
