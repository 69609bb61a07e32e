package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitRandom writes Choose of kernel.PCG for sixteen numbers at a time. Each lane has the state of one number, and goes on by
// sixteen numbers with one multiplication and one addition of 128 bits.
func emitRandom(a *x86) {
	name := "choose_" + a.name
	a.function(name, "func(dst []float32, lanes *[36]uint64, bound uint64, below, above float32)")
	dst, left, lanes := a.GP64(), a.GP64(), a.parameter("lanes")
	a.Load(a.Param("dst").Base(), dst)
	a.Load(a.Param("dst").Len(), left)
	at := func(offset int) operand.Mem { return operand.Mem{Base: lanes, Disp: offset} }
	var hi, lo [2]vec
	for i := range 2 {
		hi[i], lo[i] = a.copyOf(at(64*i)), a.copyOf(at(128+64*i))
	}
	factor := wide128{a.broadcast(at(256)), a.broadcast(at(264))}
	summand := wide128{a.broadcast(at(272)), a.broadcast(at(280))}
	c := chooser{
		x86: a, factor: factor, factorHigh: a.shift(a.VPSRLQ, factor.lo, 32), summand: summand,
		mix: a.spread(0xda942042e4dd58b5), one: a.spread(1), word: a.spread(1<<32 - 1), bits: a.spread(1<<53 - 1),
		bound: a.broadcastParameter("bound"),
	}
	below, above := a.scalar("below"), a.scalar("above")
	loop, end := a.label("loop"), a.label("end")
	a.SUBQ(operand.U32(16), left)
	a.JLT(operand.LabelRef(end))
	a.Label(loop)
	for i := range 2 {
		next := c.next(wide128{hi[i], lo[i]})
		a.VMOVDQU64(next.hi, hi[i])
		a.VMOVDQU64(next.lo, lo[i])
		chosen := a.YMM()
		a.VBLENDMPS(a.register(below).AsY(), a.register(above).AsY(), c.isBelow(next), chosen)
		a.VMOVUPS(chosen, operand.Mem{Base: dst, Disp: 32 * i})
	}
	a.ADDQ(operand.U32(64), dst)
	a.SUBQ(operand.U32(16), left)
	a.JGE(operand.LabelRef(loop))
	a.Label(end)
	for i := range 2 {
		a.VMOVDQU64(hi[i], at(64*i))
		a.VMOVDQU64(lo[i], at(128+64*i))
	}
	a.done()
}

// wide128 is a vector of integers of 128 bits in two halves.
type wide128 struct{ hi, lo vec }

// chooser contains the constants of the generator PCG-DXSM, in every lane.
type chooser struct {
	*x86
	factor, summand wide128
	factorHigh      vec // upper 32 bits of factor.lo
	mix, one        vec
	word            vec // lower 32 bits
	bits            vec // those of a number in [0,1)
	bound           vec
}

// next returns x*factor + summand.
func (c *chooser) next(x wide128) wide128 {
	upper := c.shift(c.VPSRLQ, x.lo, 32)
	// VPMULUDQ multiplies the lower 32 bits.
	low, cross := c.binary(c.VPMULUDQ, x.lo, c.factor.lo), c.binary(c.VPMULUDQ, x.lo, c.factorHigh)
	other, high := c.binary(c.VPMULUDQ, upper, c.factor.lo), c.binary(c.VPMULUDQ, upper, c.factorHigh)
	cross = c.plus(cross, c.shift(c.VPSRLQ, low, 32))
	other = c.plus(other, c.binary(c.VPANDQ, cross, c.word))
	high = c.plus(high, c.plus(c.shift(c.VPSRLQ, cross, 32), c.shift(c.VPSRLQ, other, 32)))
	low = c.binary(c.VPORQ, c.shift(c.VPSLLQ, other, 32), c.binary(c.VPANDQ, low, c.word))
	high = c.plus(high, c.plus(c.binary(c.VPMULLQ, x.hi, c.factor.lo), c.binary(c.VPMULLQ, x.lo, c.factor.hi)))
	low, high = c.plus(low, c.summand.lo), c.plus(high, c.summand.hi)
	carry := c.less(low, c.summand.lo)
	c.VPADDQ(c.one, high, carry, high)
	return wide128{high, low}
}

// isBelow reports whether the number of a state is below the bound.
func (c *chooser) isBelow(x wide128) reg.Register {
	h := c.binary(c.VPXORQ, x.hi, c.shift(c.VPSRLQ, x.hi, 32))
	h = c.binary(c.VPMULLQ, h, c.mix)
	h = c.binary(c.VPXORQ, h, c.shift(c.VPSRLQ, h, 48))
	h = c.binary(c.VPMULLQ, h, c.binary(c.VPORQ, x.lo, c.one))
	return c.less(c.binary(c.VPANDQ, h, c.bits), c.bound)
}

func (c *chooser) plus(x, y vec) vec { return c.binary(c.VPADDQ, x, y) }

// less compares integers without sign.
func (c *chooser) less(x, y vec) reg.Register {
	m := c.K()
	c.VPCMPUQ(operand.U8(1), y, x, m)
	return m
}

func (a *x86) broadcast(from operand.Op) vec {
	x := a.vector()
	a.VPBROADCASTQ(from, x)
	return x
}

func (a *x86) broadcastParameter(name string) vec { return a.broadcast(a.parameter(name)) }

// spread returns a constant in every lane.
func (a *x86) spread(x uint64) vec {
	r := a.GP64()
	a.MOVQ(operand.U64(x), r)
	return a.broadcast(r)
}
