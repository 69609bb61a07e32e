package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Operations on vectors of float32, and of int32 if the name contains it. A vec is a register or a constant in memory. Results
// are new registers.
type vec = operand.Op

// constant returns a vector of one repeated float32 in memory.
func (a *asm) constant(x float64) vec { return a.word(math.Float32bits(float32(x))) }

// word returns a vector of one repeated 32-bit pattern in memory.
func (a *asm) word(bits uint32) vec {
	name := fmt.Sprintf("all%08x", bits)
	if m, ok := a.globals[name]; ok {
		return m
	}
	m := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := 0; i < a.bytes; i += 8 {
		a.AddDatum(i, operand.U64(uint64(bits)<<32|uint64(bits)))
	}
	a.globals[name] = m
	return m
}

// register returns x in a register, because instructions accept a constant in memory only as their last operand.
func (a *asm) register(x vec) reg.VecVirtual {
	if r, ok := x.(reg.VecVirtual); ok {
		return r
	}
	return a.copyOf(x)
}

func (a *asm) copyOf(x vec) reg.VecVirtual {
	r := a.vector()
	a.VMOVUPS(x, r)
	return r
}

// binary applies an instruction with two operands.
func (a *asm) binary(op func(...operand.Op), x, y vec) vec {
	z := a.vector()
	op(y, a.register(x), z)
	return z
}

func (a *asm) add(x, y vec) vec { return a.binary(a.VADDPS, x, y) }
func (a *asm) sub(x, y vec) vec { return a.binary(a.VSUBPS, x, y) }
func (a *asm) mul(x, y vec) vec { return a.binary(a.VMULPS, x, y) }
func (a *asm) div(x, y vec) vec { return a.binary(a.VDIVPS, x, y) }

// larger returns x where x > y, else y. It also returns y if one of them is NaN.
func (a *asm) larger(x, y vec) vec { return a.binary(a.VMAXPS, x, y) }

// smaller returns x where x < y, else y. It also returns y if one of them is NaN.
func (a *asm) smaller(x, y vec) vec { return a.binary(a.VMINPS, x, y) }

func (a *asm) and(x, y vec) vec { return a.binary(a.VANDPS, x, y) }
func (a *asm) or(x, y vec) vec  { return a.binary(a.VORPS, x, y) }
func (a *asm) xor(x, y vec) vec { return a.binary(a.VXORPS, x, y) }

func (a *asm) abs(x vec) vec  { return a.and(x, a.word(1<<31-1)) }
func (a *asm) sign(x vec) vec { return a.and(x, a.word(1<<31)) }

func (a *asm) sqrt(x vec) vec {
	z := a.vector()
	a.VSQRTPS(x, z)
	return z
}

// fma returns x*y + z with one rounding.
func (a *asm) fma(x, y, z vec) vec { return a.fused(a.VFMADD231PS, x, y, z) }

// fnma returns z - x*y with one rounding.
func (a *asm) fnma(x, y, z vec) vec { return a.fused(a.VFNMADD231PS, x, y, z) }

// fused returns the sum of z and a product of x and y by an operation that adds to its last operand.
func (a *asm) fused(op func(...operand.Op), x, y, z vec) vec {
	sum := a.copyOf(z)
	op(y, a.register(x), sum)
	return sum
}

// polynomial returns c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
func (a *asm) polynomial(x vec, c ...float64) vec {
	sum := a.copyOf(a.constant(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		a.VFMADD213PS(a.constant(c[i]), x, sum)
	}
	return sum
}

// round returns the nearest integer, of two the even one.
func (a *asm) round(x vec) vec {
	z := a.vector()
	if a.wide() {
		a.VRNDSCALEPS(operand.U8(8), x, z)
	} else {
		a.VROUNDPS(operand.U8(8), x, z)
	}
	return z
}

func (a *asm) addInt(x, y vec) vec { return a.binary(a.VPADDD, x, y) }
func (a *asm) subInt(x, y vec) vec { return a.binary(a.VPSUBD, x, y) }

func (a *asm) shift(op func(...operand.Op), x vec, bits uint8) vec {
	z := a.vector()
	op(operand.U8(bits), x, z)
	return z
}

func (a *asm) shiftLeft(x vec, bits uint8) vec  { return a.shift(a.VPSLLD, x, bits) }
func (a *asm) shiftRight(x vec, bits uint8) vec { return a.shift(a.VPSRAD, x, bits) } // keeps the sign

func (a *asm) toInt(x vec) vec {
	z := a.vector()
	a.VCVTPS2DQ(x, z)
	return z
}

func (a *asm) toFloat(x vec) vec {
	z := a.vector()
	a.VCVTDQ2PS(x, z)
	return z
}

// The predicates of comparisons. With NaN they are false, except for notEqual, notAtMost, notAtLeast and unordered.
const (
	equal      = 0
	lessThan   = 17
	atMost     = 18
	unordered  = 3
	notEqual   = 4
	notAtMost  = 6
	notAtLeast = 25
	atLeast    = 29
	moreThan   = 30
)

// mask is the result of a comparison: a mask register, or a vector with ones in the elements for which it holds.
type mask = reg.Register

func (a *asm) compare(predicate uint8, x, y vec) mask { return a.compareBy(a.VCMPPS, predicate, x, y) }

func (a *asm) compareBy(op func(...operand.Op), predicate uint8, x, y vec) mask {
	var m mask
	if a.wide() {
		m = a.K()
	} else {
		m = a.vector()
	}
	op(operand.U8(predicate), y, a.register(x), m)
	return m
}

// choose returns x where m holds, else y.
func (a *asm) choose(m mask, x, y vec) vec {
	z := a.vector()
	if a.wide() {
		a.VBLENDMPS(x, a.register(y), m, z)
	} else {
		a.VBLENDVPS(m, x, a.register(y), z)
	}
	return z
}

// where returns x where m holds, else 0.
func (a *asm) where(m mask, x vec) vec {
	z := a.vector()
	if a.wide() {
		a.VMOVUPS_Z(a.register(x), m, z)
	} else {
		a.VANDPS(x, m, z)
	}
	return z
}

// indicator returns 1 where the comparison holds, else 0.
func (a *asm) indicator(predicate uint8, x, y vec) vec {
	return a.where(a.compare(predicate, x, y), a.constant(1))
}
