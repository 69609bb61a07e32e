package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitPack writes the kernels that copy a block of B into a panel. The copy of rows does not depend on the precision: its mask
// has units of four bytes. The transposition uses blocks of 8 x 8 float32 or 4 x 4 float64 and only AVX instructions, for both
// instruction sets.
func emitPack(a *x86) {
	for vectors := 1; vectors <= 2; vectors++ {
		emitPackRows(a, vectors)
	}
	if !a.wide() {
		emitTranspose(a, precisions[0])
		emitTranspose(a, precisions[1])
	}
}

func (a *x86) parameter(name string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param(name), r)
	return r
}

func emitPackRows(a *x86, vectors int) {
	name := fmt.Sprintf("packRows_%s_%d", a.name, vectors)
	a.function(name, "func(dst, src *byte, rows, step, last int)")
	dst, src, rows, step := a.parameter("dst"), a.parameter("src"), a.parameter("rows"), a.parameter("step")
	mask := a.maskOf(a.parameter("last"), 4)
	loop := a.label("loop")
	a.Label(loop)
	for v := range vectors {
		x := a.vector()
		at := operand.Mem{Base: src, Disp: v * a.bytes}
		if v < vectors-1 {
			a.VMOVUPS(at, x)
		} else {
			a.maskedLoad(4, at, mask, x)
		}
		a.VMOVUPS(x, operand.Mem{Base: dst, Disp: v * a.bytes})
	}
	a.ADDQ(step, src)
	a.ADDQ(operand.U32(vectors*a.bytes), dst)
	a.DECQ(rows)
	a.JNE(operand.LabelRef(loop))
	a.done()
}

func emitTranspose(a *x86, p precision) {
	name := "transpose" + p.name + "_" + a.name
	n := 32 / p.size
	a.function(name, "func(dst, src *byte, dstStep, srcStep, blocks int)")
	dst, src, to, from := a.parameter("dst"), a.parameter("src"), a.parameter("dstStep"), a.parameter("srcStep")
	blocks := a.parameter("blocks")
	line := a.lines(src, from, n)
	loop := a.label("loop")
	a.Label(loop)
	for half := range 2 {
		rows := []reg.VecVirtual{}
		for i := range n / 2 {
			y := a.YMM()
			low, high := line(i), line(i+n/2)
			low.Disp, high.Disp = 16*half, 16*half
			a.VMOVUPS(low, y.AsX())
			a.VINSERTF128(operand.U8(1), high, y, y)
			rows = append(rows, y)
		}
		for _, column := range a.transposeLanes(rows) {
			a.VMOVUPS(column, operand.Mem{Base: dst})
			a.ADDQ(to, dst)
		}
	}
	a.ADDQ(operand.U32(32), src)
	a.DECQ(blocks)
	a.JNE(operand.LabelRef(loop))
	a.done()
}

// lines returns the addresses of up to eight lines, computed from odd multiples of their distance.
func (a *x86) lines(base, step reg.GPVirtual, n int) func(i int) operand.Mem {
	odd := map[int]reg.GPVirtual{1: step}
	for i := 3; i < n; i += 2 {
		odd[i] = a.GP64()
		a.LEAQ(operand.Mem{Base: odd[i-2], Index: step, Scale: 2}, odd[i])
	}
	return func(i int) operand.Mem {
		if i == 0 {
			return operand.Mem{Base: base}
		}
		scale := i & -i
		return operand.Mem{Base: base, Index: odd[i/scale], Scale: uint8(scale)}
	}
}

// transposeLanes transposes the 4 x 4 float32 or 2 x 2 float64 in each half of the registers.
func (a *x86) transposeLanes(rows []reg.VecVirtual) []reg.VecVirtual {
	pair := func(unpack func(...operand.Op), x, y reg.VecVirtual) reg.VecVirtual {
		z := a.YMM()
		unpack(y, x, z)
		return z
	}
	low, high := a.VUNPCKLPD, a.VUNPCKHPD
	if len(rows) == 2 {
		return []reg.VecVirtual{pair(low, rows[0], rows[1]), pair(high, rows[0], rows[1])}
	}
	t0, t1 := pair(a.VUNPCKLPS, rows[0], rows[1]), pair(a.VUNPCKHPS, rows[0], rows[1])
	t2, t3 := pair(a.VUNPCKLPS, rows[2], rows[3]), pair(a.VUNPCKHPS, rows[2], rows[3])
	return []reg.VecVirtual{pair(low, t0, t2), pair(high, t0, t2), pair(low, t1, t3), pair(high, t1, t3)}
}
