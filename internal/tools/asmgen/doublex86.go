package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// double returns a vector of one repeated float64 in memory.
func (a *x86) double(x float64) vec {
	repeated := make([]float64, a.lanes(8))
	for i := range repeated {
		repeated[i] = x
	}
	return a.doubles(fmt.Sprintf("double%016x", math.Float64bits(x)), repeated)
}

// doubles returns a named vector in memory.
func (a *x86) doubles(name string, values []float64) operand.Mem {
	if m, ok := a.globals[name]; ok {
		return m
	}
	m := a.StaticGlobal(name)
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, v := range values {
		a.AddDatum(8*i, operand.U64(math.Float64bits(v)))
	}
	a.globals[name] = m
	return m
}

// half returns a vector of half the size.
func (a *x86) half() reg.VecVirtual {
	if a.wide() {
		return a.YMM()
	}
	return a.XMM()
}

// widened returns both halves of x in float64.
func (a *x86) widened(x vec) (halves [2]vec) {
	for i := range halves {
		from, wide := a.half(), a.vector()
		if a.wide() {
			a.VEXTRACTF64X4(operand.U8(i), x, from)
		} else {
			a.VEXTRACTF128(operand.U8(i), x, from)
		}
		a.VCVTPS2PD(from, wide)
		halves[i] = wide
	}
	return halves
}

// rounded returns both halves in one vector of float32.
func (a *x86) rounded(halves ...vec) vec {
	var rounded [2]reg.VecVirtual
	for i, half := range halves {
		rounded[i] = a.half()
		if a.wide() {
			a.VCVTPD2PS(half, rounded[i])
		} else {
			a.VCVTPD2PSY(half, rounded[i])
		}
	}
	z := a.vector()
	if a.wide() {
		a.VINSERTF64X4(operand.U8(1), rounded[1], rounded[0].AsZ(), z)
	} else {
		a.VINSERTF128(operand.U8(1), rounded[1], rounded[0].AsY(), z)
	}
	return z
}

func (a *x86) addD(x, y vec) vec { return a.binary(a.VADDPD, x, y) }
func (a *x86) subD(x, y vec) vec { return a.binary(a.VSUBPD, x, y) }
func (a *x86) mulD(x, y vec) vec { return a.binary(a.VMULPD, x, y) }
func (a *x86) divD(x, y vec) vec { return a.binary(a.VDIVPD, x, y) }
func (a *x86) andD(x, y vec) vec { return a.binary(a.VANDPD, x, y) }
func (a *x86) xorD(x, y vec) vec { return a.binary(a.VXORPD, x, y) }

func (a *x86) noLessD(x vec, low float64) vec  { return a.binary(a.VMAXPD, a.double(low), x) }
func (a *x86) noMoreD(x vec, high float64) vec { return a.binary(a.VMINPD, a.double(high), x) }

func (a *x86) hornerD(sum, x, c vec) vec {
	a.VFMADD213PD(c, x, sum)
	return sum
}

func (a *x86) fmaD(x, y, z vec) vec  { return a.fused(a.VFMADD231PD, x, y, z) }
func (a *x86) fnmaD(x, y, z vec) vec { return a.fused(a.VFNMADD231PD, x, y, z) }

func (a *x86) compareD(predicate uint8, x, y vec) mask { return a.compareBy(a.VCMPPD, predicate, x, y) }

// chooseD returns x where m holds, else y. It does not use VBLENDMPD, of which avo assumes that it reads its result: many of
// these would be too many live registers.
func (a *x86) chooseD(m mask, x, y vec) vec {
	if a.wide() {
		z := a.copyOf(y)
		a.VMOVUPD(x, m, z)
		return z
	}
	z := a.vector()
	a.VBLENDVPD(m, x, a.register(y), z)
	return z
}

func (a *x86) wholeD(x vec) (n vec, scale func(y vec) vec) {
	whole, float := reg.VecVirtual(a.XMM()), a.vector()
	if a.wide() {
		whole = a.YMM()
		a.VCVTPD2DQ(x, whole)
	} else {
		a.VCVTPD2DQY(x, whole)
	}
	a.VCVTDQ2PD(whole, float)
	return float, func(y vec) vec {
		if a.wide() {
			return a.binary(a.VSCALEFPD, y, float)
		}
		power := a.vector()
		a.VPMOVSXDQ(whole, power)
		power = a.binary(a.VPADDQ, power, a.doubles("bias", []float64{
			math.Float64frombits(1023), math.Float64frombits(1023), math.Float64frombits(1023), math.Float64frombits(1023)})).(reg.VecVirtual)
		return a.mulD(y, a.shift(a.VPSLLQ, power, 52))
	}
}

// branch returns the number of masks that hold. A mask implies those before it.
func (a *x86) branch(first, second, third mask) branches {
	whole := func(i uint64) vec { return a.double(math.Float64frombits(i)) }
	if a.wide() {
		one := a.chooseD(first, whole(1), whole(0))
		return branches{index: a.chooseD(third, whole(3), a.chooseD(second, whole(2), one))}
	}
	odd := a.binary(a.VXORPD, a.binary(a.VXORPD, first, second), third)
	return branches{odd, second}
}

func (a *x86) lookup(b branches, name string, each [4]float64) vec {
	here := a.vector()
	if a.wide() {
		a.VPERMPD(a.doubles(name, append(each[:], each[:]...)), b.index, here)
		return here
	}
	lower, upper := a.vector(), a.vector()
	a.VPERMILPD(b.index, a.copyOf(a.doubles(name+"low", []float64{each[0], each[1], each[0], each[1]})), lower)
	a.VPERMILPD(b.index, a.copyOf(a.doubles(name+"high", []float64{each[2], each[3], each[2], each[3]})), upper)
	return a.register(a.chooseD(b.upper, upper, lower))
}

func (a *x86) jump(label string) { a.JMP(operand.LabelRef(label)) }

// skipUnless jumps to the label unless an element of the mask, of float64, holds.
func (a *x86) skipUnless(m mask, label string) {
	a.test(m, a.KORTESTB, a.VTESTPD)
	a.JEQ(operand.LabelRef(label))
}

// skipIf jumps to the label if an element of the mask, of float32, holds.
func (a *x86) skipIf(m mask, label string) {
	a.test(m, a.KORTESTW, a.VTESTPS)
	a.JNE(operand.LabelRef(label))
}

// test sets the zero flag if no element of the mask holds.
func (a *x86) test(m mask, wide, narrow func(x, y operand.Op)) {
	if a.wide() {
		wide(m, m)
	} else {
		narrow(m, m)
	}
}
