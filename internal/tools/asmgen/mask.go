package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maskOf returns the mask of the first count elements of a vector, count >= 1: a mask register, or a vector in which the bits
// of these elements are ones.
func (a *x86) maskOf(count reg.GPVirtual, size int) reg.Register {
	if a.wide() {
		ones, mask := a.GP64(), a.K()
		a.MOVQ(operand.I32(-1), ones)
		a.BZHIQ(count, ones, ones)
		a.KMOVW(ones.As32(), mask)
		return mask
	}
	table, at := a.maskTable(), a.GP64()
	a.LEAQ(table, at)
	back := a.GP64()
	a.MOVQ(count, back)
	a.NEGQ(back)
	mask := a.vector()
	a.VMOVUPS(operand.Mem{Base: at, Index: back, Scale: uint8(size), Disp: a.bytes}, mask)
	return mask
}

// maskTable returns a vector of ones followed by a vector of zeros. A vector that is read n elements before the border begins
// with n ones.
func (a *x86) maskTable() operand.Mem {
	if m, ok := a.globals["mask"]; ok {
		return m
	}
	m := a.StaticGlobal("mask")
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		word := operand.U64(0)
		if i < 4 {
			word = ^word
		}
		a.AddDatum(8*i, word)
	}
	a.globals["mask"] = m
	return m
}

// maskedLoad reads the elements that the mask selects, and sets the others to zero. It does not access other memory.
func (a *x86) maskedLoad(size int, from operand.Mem, mask operand.Op, to operand.Op) {
	switch {
	case a.wide() && size == 4:
		a.VMOVUPS_Z(from, mask, to)
	case a.wide():
		a.VMOVUPD_Z(from, mask, to)
	case size == 4:
		a.VMASKMOVPS(from, mask, to)
	default:
		a.VMASKMOVPD(from, mask, to)
	}
}

// maskedStore writes only the elements that the mask selects.
func (a *x86) maskedStore(size int, from operand.Op, mask operand.Op, to operand.Mem) {
	switch {
	case a.wide() && size == 4:
		a.VMOVUPS(from, mask, to)
	case a.wide():
		a.VMOVUPD(from, mask, to)
	case size == 4:
		a.VMASKMOVPS(from, mask, to)
	default:
		a.VMASKMOVPD(from, mask, to)
	}
}
