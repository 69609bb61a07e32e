package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// constant returns a vector of one repeated float32 in memory.
func (a *x86) constant(x float64) vec { return a.word(math.Float32bits(float32(x))) }

// word returns a vector of one repeated 32-bit pattern in memory.
func (a *x86) word(bits uint32) vec {
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
func (a *x86) register(x vec) reg.VecVirtual {
	if r, ok := x.(reg.VecVirtual); ok {
		return r
	}
	return a.copied(x)
}

func (a *x86) fresh() vec { return a.vector() }

func (a *x86) copyOf(x vec) vec { return a.copied(x) }

func (a *x86) copied(x vec) reg.VecVirtual {
	r := a.vector()
	a.VMOVUPS(x, r)
	return r
}

func (a *x86) set(to, from vec)  { a.VMOVUPS(from, to) }
func (a *x86) setD(to, from vec) { a.VMOVUPD(from, to) }

// binary applies an instruction with two operands.
func (a *x86) binary(op func(...operand.Op), x, y vec) vec {
	z := a.vector()
	op(y, a.register(x), z)
	return z
}

func (a *x86) add(x, y vec) vec { return a.binary(a.VADDPS, x, y) }
func (a *x86) sub(x, y vec) vec { return a.binary(a.VSUBPS, x, y) }
func (a *x86) mul(x, y vec) vec { return a.binary(a.VMULPS, x, y) }
func (a *x86) div(x, y vec) vec { return a.binary(a.VDIVPS, x, y) }

func (a *x86) larger(x, y vec) vec { return a.binary(a.VMAXPS, x, y) }

func (a *x86) smaller(x, y vec) vec { return a.binary(a.VMINPS, x, y) }

func (a *x86) noLess(x vec, low float64) vec  { return a.larger(a.constant(low), x) }
func (a *x86) noMore(x vec, high float64) vec { return a.smaller(a.constant(high), x) }

func (a *x86) and(x, y vec) vec { return a.binary(a.VANDPS, x, y) }
func (a *x86) or(x, y vec) vec  { return a.binary(a.VORPS, x, y) }
func (a *x86) xor(x, y vec) vec { return a.binary(a.VXORPS, x, y) }

func (a *x86) abs(x vec) vec { return a.and(x, a.word(1<<31-1)) }

func (a *x86) sqrt(x vec) vec {
	z := a.vector()
	a.VSQRTPS(x, z)
	return z
}

func (a *x86) fma(x, y, z vec) vec { return a.fused(a.VFMADD231PS, x, y, z) }

func (a *x86) fnma(x, y, z vec) vec { return a.fused(a.VFNMADD231PS, x, y, z) }

// fused returns the sum of z and a product of x and y by an operation that adds to its last operand.
func (a *x86) fused(op func(...operand.Op), x, y, z vec) vec {
	sum := a.copyOf(z)
	op(y, a.register(x), sum)
	return sum
}

func (a *x86) horner(sum, x, c vec) vec {
	a.VFMADD213PS(c, x, sum)
	return sum
}

func (a *x86) round(x vec) vec {
	z := a.vector()
	if a.wide() {
		a.VRNDSCALEPS(operand.U8(8), x, z)
	} else {
		a.VROUNDPS(operand.U8(8), x, z)
	}
	return z
}

func (a *x86) addInt(x, y vec) vec { return a.binary(a.VPADDD, x, y) }
func (a *x86) subInt(x, y vec) vec { return a.binary(a.VPSUBD, x, y) }

func (a *x86) shift(op func(...operand.Op), x vec, bits uint8) vec {
	z := a.vector()
	op(operand.U8(bits), x, z)
	return z
}

func (a *x86) shiftLeft(x vec, bits uint8) vec  { return a.shift(a.VPSLLD, x, bits) }
func (a *x86) shiftRight(x vec, bits uint8) vec { return a.shift(a.VPSRAD, x, bits) }

func (a *x86) toInt(x vec) vec {
	z := a.vector()
	a.VCVTPS2DQ(x, z)
	return z
}

func (a *x86) scale(x, n vec) vec {
	if a.wide() {
		return a.binary(a.VSCALEFPS, x, n)
	}
	whole := a.toInt(n)
	half := a.shiftRight(whole, 1)
	power := func(n vec) vec { return a.shiftLeft(a.addInt(n, a.word(127)), 23) }
	return a.mul(a.mul(x, power(half)), power(a.subInt(whole, half)))
}

func (a *x86) toFloat(x vec) vec {
	z := a.vector()
	a.VCVTDQ2PS(x, z)
	return z
}

func (a *x86) compare(predicate uint8, x, y vec) mask { return a.compareBy(a.VCMPPS, predicate, x, y) }

func (a *x86) compareBy(op func(...operand.Op), predicate uint8, x, y vec) mask {
	var m mask
	if a.wide() {
		m = a.K()
	} else {
		m = a.vector()
	}
	op(operand.U8(predicate), y, a.register(x), m)
	return m
}

func (a *x86) choose(m mask, x, y vec) vec {
	z := a.vector()
	if a.wide() {
		a.VBLENDMPS(x, a.register(y), m, z)
	} else {
		a.VBLENDVPS(m, x, a.register(y), z)
	}
	return z
}

func (a *x86) where(m mask, x vec) vec {
	z := a.vector()
	if a.wide() {
		a.VMOVUPS_Z(a.register(x), m, z)
	} else {
		a.VANDPS(x, m, z)
	}
	return z
}
