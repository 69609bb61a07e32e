package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The layout of kernel.tile. A test of package kernel checks it.
const (
	tileA, tileB, tileC            = 0, 8, 16
	tileK                          = 24
	tileARow, tileAStep            = 32, 40
	tileBStep, tileCRow            = 48, 56
	tileLast, tileAlpha, tileBeta0 = 64, 72, 72 // beta follows alpha
)

// precision selects the instructions for float32 or float64.
type precision struct {
	name string
	size int
}

var precisions = []precision{{"32", 4}, {"64", 8}}

// tileRows returns the maximum number of rows of a tile. With two vectors of columns, the sums take 12 x 2 of 32 registers, or
// 6 x 2 of 16.
func (a *x86) tileRows() int {
	if a.wide() {
		return 12
	}
	return 6
}

func emitGemm(a *x86) {
	for _, p := range precisions {
		for rows := 1; rows <= a.tileRows(); rows++ {
			for vectors := 1; vectors <= 2; vectors++ {
				g := &gemm{x86: a, precision: p, rows: rows, vectors: vectors}
				g.emit()
			}
		}
	}
}

// gemm writes the micro-kernel for one tile size: C(rows x vectors) = alpha A B + beta C. The sums stay in registers. A is
// read with two strides, so that it may be stored by rows, by columns or packed. B is read in rows of complete vectors. Only
// the last vector of each row of C may be partial.
type gemm struct {
	*x86
	precision
	rows, vectors int
	args          reg.GPVirtual
	sums          [][]reg.VecVirtual
}

func (g *gemm) emit() {
	name := fmt.Sprintf("tile%s_%s_%dx%d", g.precision.name, g.isa.name, g.rows, g.vectors)
	g.function(name, "func(t *byte)")
	g.args = g.GP64()
	g.MOVQ(operand.NewParamAddr("t", 0), g.args)
	g.clear()
	g.multiply()
	g.finish()
}

func (g *gemm) field(offset int) operand.Mem { return operand.Mem{Base: g.args, Disp: offset} }

func (g *gemm) load(offset int) reg.GPVirtual {
	r := g.GP64()
	g.MOVQ(g.field(offset), r)
	return r
}

// clear sets the sums to 0 and prefetches the tile of C, which is needed only at the end.
func (g *gemm) clear() {
	c, row := g.load(tileC), g.load(tileCRow)
	for range g.rows {
		sums := []reg.VecVirtual{}
		for v := range g.vectors {
			g.PREFETCHT0(operand.Mem{Base: c, Disp: v * g.bytes})
			sum := g.vector()
			g.zero(sum)
			sums = append(sums, sum)
		}
		g.sums = append(g.sums, sums)
		g.ADDQ(row, c)
	}
}

func (g *gemm) zero(v reg.VecVirtual) {
	if g.wide() {
		g.VPXORD(v, v, v)
		return
	}
	g.VXORPS(v, v, v)
}

// unrolled is the number of values of k per iteration of the loop. This is a tenth faster than a single value.
const unrolled = 4

// multiply adds up the products over k: first in complete iterations of the loop, then for the remaining values of k.
func (g *gemm) multiply() {
	k, b, bStep := g.load(tileK), g.load(tileB), g.load(tileBStep)
	address, advance := g.rowsOfA()
	one := func() {
		g.multiplyOne(b, address)
		advance()
		g.ADDQ(bStep, b)
	}
	round, rest, single, end := g.label("round"), g.label("rest"), g.label("single"), g.label("summed")
	g.SUBQ(operand.U32(unrolled), k)
	g.JLT(operand.LabelRef(rest))
	g.Label(round)
	for range unrolled {
		one()
	}
	g.SUBQ(operand.U32(unrolled), k)
	g.JGE(operand.LabelRef(round))
	g.Label(rest)
	g.ADDQ(operand.U32(unrolled), k)
	g.JEQ(operand.LabelRef(end))
	g.Label(single)
	one()
	g.DECQ(k)
	g.JNE(operand.LabelRef(single))
	g.Label(end)
}

// multiplyOne broadcasts each element of a column of A to a register and multiplies the register by the row of B.
func (g *gemm) multiplyOne(b reg.GPVirtual, address func(row int) operand.Mem) {
	columns := make([]reg.VecVirtual, g.vectors)
	for v := range columns {
		columns[v] = g.vector()
		g.move(operand.Mem{Base: b, Disp: v * g.bytes}, columns[v])
	}
	for r := range g.rows {
		spread := g.vector()
		g.broadcast(address(r), spread)
		for v := range columns {
			g.multiplyAdd(columns[v], spread, g.sums[r][v])
		}
	}
}

// rowsOfA returns the addresses of the rows' elements. One base register serves the rows 0, 1, 2, 4 and 8 after it.
func (g *gemm) rowsOfA() (address func(row int) operand.Mem, advance func()) {
	row, step := g.load(tileARow), g.load(tileAStep)
	bases := []reg.GPVirtual{g.load(tileA)}
	for first := 3; first < g.rows; first += 3 {
		if first == 9 {
			break // 9 = 3 + 6 rows: see below
		}
		next := g.GP64()
		g.LEAQ(operand.Mem{Base: bases[len(bases)-1], Index: row, Scale: 2}, next)
		g.ADDQ(row, next)
		bases = append(bases, next)
	}
	var triple reg.GPVirtual
	if g.rows > 9 {
		triple = g.GP64()
		g.LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, triple)
	}
	address = func(r int) operand.Mem {
		switch {
		case r == 9:
			return operand.Mem{Base: bases[2], Index: triple, Scale: 1}
		case r == 10:
			return operand.Mem{Base: bases[2], Index: row, Scale: 4}
		case r == 11:
			return operand.Mem{Base: bases[1], Index: row, Scale: 8}
		case r%3 == 0:
			return operand.Mem{Base: bases[r/3]}
		}
		return operand.Mem{Base: bases[r/3], Index: row, Scale: uint8(r % 3)}
	}
	advance = func() {
		for _, base := range bases {
			g.ADDQ(step, base)
		}
	}
	return address, advance
}

// finish writes alpha times the sums, plus beta C unless beta is 0.
func (g *gemm) finish() {
	alpha, beta := g.vector(), g.vector()
	g.broadcast(g.field(tileAlpha), alpha)
	for r := range g.rows {
		for v := range g.vectors {
			g.multiplyBy(alpha, g.sums[r][v])
		}
	}
	last := g.tail()
	overwrite, end := g.label("overwrite"), g.label("end")
	g.test(overwrite)
	g.broadcast(g.field(tileAlpha+g.size), beta)
	g.eachRow(func(r, v int, at operand.Mem) {
		old := g.vector()
		last.load(v, at, old)
		g.multiplyAdd(old, beta, g.sums[r][v])
		last.store(v, g.sums[r][v], at)
	})
	g.JMP(operand.LabelRef(end))
	g.Label(overwrite)
	g.eachRow(func(r, v int, at operand.Mem) { last.store(v, g.sums[r][v], at) })
	g.Label(end)
	g.done()
}

// test jumps to overwrite if beta is +0 or -0.
func (g *gemm) test(overwrite string) {
	if g.size == 4 {
		beta := g.GP32()
		g.MOVL(g.field(tileAlpha+g.size), beta)
		g.ADDL(beta, beta) // shifts the sign out
	} else {
		beta := g.GP64()
		g.MOVQ(g.field(tileAlpha+g.size), beta)
		g.ADDQ(beta, beta)
	}
	g.JEQ(operand.LabelRef(overwrite))
}

func (g *gemm) eachRow(do func(r, v int, at operand.Mem)) {
	c, row := g.load(tileC), g.load(tileCRow)
	for r := range g.rows {
		for v := range g.vectors {
			do(r, v, operand.Mem{Base: c, Disp: v * g.bytes})
		}
		if r+1 < g.rows {
			g.ADDQ(row, c)
		}
	}
}

// tail reads and writes the elements of C in the last vector, which a mask selects.
type tail struct {
	g    *gemm
	mask reg.Register
}

func (g *gemm) tail() tail {
	return tail{g, g.maskOf(g.load(tileLast), g.size)}
}

func (t tail) load(v int, from operand.Mem, to reg.VecVirtual) {
	if v < t.g.vectors-1 {
		t.g.move(from, to)
		return
	}
	t.g.maskedLoad(t.g.size, from, t.mask, to)
}

func (t tail) store(v int, from reg.VecVirtual, to operand.Mem) {
	if v < t.g.vectors-1 {
		t.g.move(from, to)
		return
	}
	t.g.maskedStore(t.g.size, from, t.mask, to)
}

func (g *gemm) move(from, to operand.Op) { g.VMOVUPS(from, to) }

func (g *gemm) broadcast(from, to operand.Op) {
	if g.size == 4 {
		g.VBROADCASTSS(from, to)
		return
	}
	g.VBROADCASTSD(from, to)
}

func (g *gemm) multiplyAdd(x, y, sum operand.Op) {
	if g.size == 4 {
		g.VFMADD231PS(x, y, sum)
		return
	}
	g.VFMADD231PD(x, y, sum)
}

func (g *gemm) multiplyBy(x, y operand.Op) {
	if g.size == 4 {
		g.VMULPS(x, y, y)
		return
	}
	g.VMULPD(x, y, y)
}
