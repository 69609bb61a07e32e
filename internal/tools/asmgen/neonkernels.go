package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The registers of loops over arrays: the number of elements that are left, and the positions in the arrays from baseFirst on.
const (
	left       gp = 0
	baseFirst  gp = 1
	within     gp = 8 // position in the elements after the last whole vector
	controlOld gp = 11
)

// loopsOver writes the loops of a kernel over its arrays, up to the shortest length.
type loopsOver struct {
	*neon
	arrays []array
	body   func(in []vec, step int) (out []vec) // step is the number of the vector in an iteration
}

func (n *neon) sweep(arrays []array, unroll int, body func(in []vec) []vec) {
	l := loopsOver{n, arrays, func(in []vec, _ int) []vec { return body(in) }}
	l.start()
	l.loop(max(unroll, 2))
	l.loop(1)
	end := n.label("end")
	n.goTo(end, "CBZ R0,", "cbz x0,")
	l.rest(0, n.constant(0))
	n.Label(end)
}

// start computes the shortest length of the arrays.
func (l *loopsOver) start() {
	for i, array := range l.arrays {
		parameter := l.signature.Params().Lookup(array.name)
		l.parameter(parameter.Base(), baseFirst+gp(i))
		if i == 0 {
			l.parameter(parameter.Len(), left)
			continue
		}
		l.parameter(parameter.Len(), within)
		l.raw(fmt.Sprintf("CMP R%d, R%d", left, within), "")
		l.raw(fmt.Sprintf("CSEL LT, R%d, R%d, R%d", within, left, left), "")
	}
}

// loop repeats the body while at least count vectors remain.
func (l *loopsOver) loop(count int) {
	again, exit := l.label("loop"), l.label("exit")
	l.subtract(4*count, exit, "LT")
	l.raw("PCALIGN $16", "")
	l.Label(again)
	read, written := make([][]vec, count), make([][]vec, count) // one list per vector of an iteration
	for q, array := range l.arrays {
		if !array.read {
			continue
		}
		each := make([]vec, count)
		for i := range each {
			each[i] = l.fresh()
			read[i] = append(read[i], each[i])
		}
		l.vectors(loads, baseFirst+gp(q), each, !array.write, out)
	}
	for i := range count {
		written[i] = l.body(read[i], i)
	}
	at := 0
	for q, array := range l.arrays {
		if !array.write {
			continue
		}
		var each []vec
		for i := range written {
			each = append(each, written[i][at])
		}
		at++
		l.vectors(stores, baseFirst+gp(q), each, true, in)
	}
	l.subtract(4*count, again, "GE")
	l.Label(exit)
	l.raw(fmt.Sprintf("ADD $%d, R%d", 4*count, left), "")
}

// subtract takes elements off those that are left, and jumps to the label if the condition holds.
func (n *neon) subtract(count int, label, condition string) {
	n.raw(fmt.Sprintf("SUBS $%d, R%d", count, left), fmt.Sprintf("subs x%d, x%[1]d, #%d", left, count))
	n.goTo(label, "B"+condition, "b."+strings.ToLower(condition))
}

// transfer contains the instructions that read or write vectors in memory.
type transfer struct {
	single, double                   string
	one, oneAdvance, two, twoAdvance uint32
}

var (
	loads  = transfer{"ldr", "ldp", 0x3dc00000, 0x3cc00400, 0xad400000, 0xacc00000}
	stores = transfer{"str", "stp", 0x3d800000, 0x3c800400, 0xad000000, 0xac800000}
)

// vectors reads or writes consecutive vectors. With advance, the position is after them then.
func (n *neon) vectors(t transfer, base gp, each []vec, advance bool, role func(vec) field) {
	size := 16 * len(each)
	for i := 0; i < len(each); i += 2 {
		at := 16 * i
		moves := advance && i == 0
		if advance && i > 0 {
			at -= size // the first instruction has advanced
		}
		if i+1 == len(each) {
			n.vector(t, base, at, each[i], moves, size, role)
			continue
		}
		if moves {
			n.emit(opcode{text: fmt.Sprintf("%s q%%d, q%%d, [x%%d], #%d", t.double, size), bits: t.twoAdvance | uint32(size/16)<<15, shifts: pair}, role(each[i]), role(each[i+1]), base.field())
		} else {
			n.emit(opcode{text: fmt.Sprintf("%s q%%d, q%%d, [x%%d, #%d]", t.double, at), bits: t.two | uint32(at/16)&0x7f<<15, shifts: pair}, role(each[i]), role(each[i+1]), base.field())
		}
	}
}

func (n *neon) vector(t transfer, base gp, at int, x vec, advance bool, by int, role func(vec) field) {
	switch {
	case advance:
		n.emit(opcode{text: fmt.Sprintf("%s q%%d, [x%%d], #%d", t.single, by), bits: t.oneAdvance | uint32(by)<<12, shifts: two}, role(x), base.field())
	case at < 0: // the form without advance has no negative offsets of this scale
		n.emit(opcode{text: fmt.Sprintf("%sur q%%d, [x%%d, #%d]", t.single[:2], at), bits: t.oneAdvance&^0x400 | uint32(at)&0x1ff<<12, shifts: two}, role(x), base.field())
	default:
		n.emit(opcode{text: fmt.Sprintf("%s q%%d, [x%%d, #%d]", t.single, at), bits: t.one | uint32(at/16)<<10, shifts: two}, role(x), base.field())
	}
}

// rest runs the body once for the one to three elements that are left, in vectors whose other elements are those of neutral.
func (l *loopsOver) rest(step int, neutral vec) {
	var read, written []vec
	for q, array := range l.arrays {
		if !array.read {
			continue
		}
		x := l.copyOf(neutral)
		read = append(read, x)
		l.raw(fmt.Sprintf("MOVD R%d, R%d", baseFirst+gp(q), within), "")
		l.lanes("ld1", 0x0ddf8000, within, x, changed)
	}
	written = l.body(read, step)
	for q, array := range l.arrays {
		if array.write {
			l.lanes("st1", 0x0d9f8000, baseFirst+gp(q), written[0], in)
			written = written[1:]
		}
	}
}

// lanes reads or writes as many elements of a vector as are left, one to three.
func (n *neon) lanes(name string, bits uint32, at gp, x vec, role func(vec) field) {
	end := n.label("lanes")
	for i, condition := range []string{"", "LT", "EQ"} {
		switch {
		case i == 1:
			n.raw(fmt.Sprintf("CMP $2, R%d", left), "")
			fallthrough
		case i == 2:
			n.goTo(end, "B"+condition, "")
		}
		n.emit(opcode{text: fmt.Sprintf("%s {v%%d.s}[%d], [x%%d], #4", name, i), bits: bits | uint32(i&1)<<12 | uint32(i>>1)<<30, shifts: two}, role(x), at.field())
	}
	n.Label(end)
}

// flushDenormals makes the processor treat denormals as 0 until restore is called, as on amd64.
func (n *neon) flushDenormals() (restore func()) {
	n.raw(fmt.Sprintf("MOVD FPCR, R%d", controlOld), "")
	n.raw(fmt.Sprintf("ORR $(1<<24), R%d, R%d", controlOld, controlOld+1), "")
	n.raw(fmt.Sprintf("MOVD R%d, FPCR", controlOld+1), "")
	return func() { n.raw(fmt.Sprintf("MOVD R%d, FPCR", controlOld), "") }
}

// neonReductions writes the reductions in the order of AVX2, whose vectors have two of these: eight accumulators, of which the first
// two take what is left after the last 32 elements. The results have the same bits.
func neonReductions(n *neon) {
	a := &asm{n}
	for _, r := range reductions {
		operands := []string{"a", "b"}[:r.arrays]
		name := n.kernelName(r.field)
		n.function(name, "func("+strings.Join(operands, ", ")+" []float32) float32")
		var sums [2 * accumulators]vec
		for i := range sums {
			sums[i] = n.copyOf(n.constant(r.start))
		}
		l := loopsOver{neon: n, body: func(x []vec, step int) []vec {
			n.set(sums[step], r.fold(a, sums[step], x))
			return nil
		}}
		for _, o := range operands {
			l.arrays = append(l.arrays, array{name: o, read: true})
		}
		l.start()
		l.loop(2 * accumulators)
		l.loop(2)
		less, end := n.label("less"), n.label("end")
		n.goTo(less, "TBZ $2, R0,", "")
		read := n.several(len(l.arrays))
		for q, x := range read {
			n.vector(loads, baseFirst+gp(q), 0, x, true, 16, out)
		}
		l.body(read, 0)
		l.subtract(4, end, "EQ")
		l.rest(1, n.constant(r.start))
		n.jump(end)
		n.Label(less)
		n.goTo(end, "CBZ R0,", "")
		l.rest(0, n.constant(r.start))
		n.Label(end)
		half := func(i int) vec {
			return r.join(a, r.join(a, sums[i], sums[i+2]), r.join(a, sums[i+4], sums[i+6]))
		}
		total := r.join(a, half(0), half(1))
		for _, by := range []int{8, 4} {
			moved := n.binary(opcode{text: fmt.Sprintf("ext v%%d.16b, v%%d.16b, v%%d.16b, #%d", by), bits: 0x6e000000 | uint32(by)<<11, shifts: three}, total, total)
			total = r.join(a, total, moved)
		}
		n.emit(opcode{native: fmt.Sprintf("FMOVS F%%d, ret+%d(FP)", n.signature.Params().Bytes())}, in(total))
		n.done()
	}
	neonFromBytes(n)
}

func neonFromBytes(n *neon) {
	a := &asm{n}
	name := n.kernelName("FromBytes")
	n.function(name, "func(dst []float32, src []byte)")
	l := loopsOver{neon: n, arrays: []array{{name: "dst"}, {name: "src"}}}
	l.start()
	longer := func(name, to, from string, bits uint32, x vec) vec {
		return n.unary(opcode{text: fmt.Sprintf("%s v%%d.%s, v%%d.%s, #0", name, to, from), bits: bits, shifts: two}, x)
	}
	again, each, end := n.label("loop"), n.label("each"), n.label("end")
	exit := n.label("exit")
	n.subtract(8, exit, "LT")
	n.Label(again)
	x := n.fresh()
	n.emit(opcode{text: "ldr d%d, [x%d], #8", bits: 0xfc408400, shifts: two}, out(x), (baseFirst + 1).field())
	x = longer("ushll", "8h", "8b", 0x2f08a400, x)
	first, second := longer("ushll", "4s", "4h", 0x2f10a400, x), longer("ushll2", "4s", "8h", 0x6f10a400, x)
	n.vectors(stores, baseFirst, []vec{a.per255(n.toFloat(first)), a.per255(n.toFloat(second))}, true, in)
	n.subtract(8, again, "GE")
	n.Label(exit)
	n.raw(fmt.Sprintf("ADD $8, R%d", left), "")
	n.goTo(end, "CBZ R0,", "")
	n.Label(each)
	x = n.fresh()
	n.emit(opcode{text: "ldr b%d, [x%d], #1", bits: 0x3c401400, shifts: two}, out(x), (baseFirst + 1).field())
	n.emit(opcode{text: "str s%d, [x%d], #4", bits: 0xbc004400, shifts: two}, in(a.per255(n.toFloat(x))), baseFirst.field())
	n.subtract(1, each, "NE")
	n.Label(end)
	n.done()
}

// The tiles of products. The sums of 8 rows and 3 vectors of columns take 24 of 32 registers. A is packed, so that a load reads the
// elements of several rows; each is multiplied by the vectors of B without a separate broadcast. Tiles at an edge
// are computed as whole ones, of one of these numbers of rows.
var neonRows = []int{1, 2, 4, 8}

const neonVectors = 3

func neonGemm(n *neon) {
	for _, p := range precisions {
		for _, rows := range neonRows {
			for vectors := 1; vectors <= neonVectors; vectors++ {
				g := &neonTile{neon: n, precision: p, rows: rows, vectors: vectors}
				g.write()
			}
		}
	}
}

// neonTile writes the micro-kernel for one tile size: C = alpha A B + beta C. A has its rows side by side: the elements of a value of k
// are contiguous, in whole vectors.
type neonTile struct {
	*neon
	precision     precision
	rows, vectors int
	sums          [][]vec
}

const (
	tileArgs gp = iota
	addressA
	addressB
	addressC
	depth
	stepA
	stepB
	rowC
)

func (g *neonTile) write() {
	name := fmt.Sprintf("tile%s_neon_%dx%d", g.precision.name, g.rows, g.vectors)
	g.function(name, "func(t *byte)")
	g.parameters("t")
	for _, f := range []struct {
		to gp
		at int
	}{{addressA, tileA}, {addressB, tileB}, {addressC, tileC}, {depth, tileK}, {stepA, tileAStep}, {stepB, tileBStep}, {rowC, tileCRow}} {
		g.raw(fmt.Sprintf("MOVD %d(R%d), R%d", f.at, tileArgs, f.to), "")
	}
	g.raw(fmt.Sprintf("MOVD R%d, R%d", addressC, within), "")
	for r := range g.rows {
		var sums []vec
		for range g.vectors {
			sum := g.fresh()
			g.emit(opcode{text: "movi v%d.2d, #0", bits: 0x6f00e400, shifts: one}, out(sum))
			sums = append(sums, sum)
		}
		g.sums = append(g.sums, sums)
		g.raw(fmt.Sprintf("PRFM (R%d), PSTL1KEEP", within), "")
		if r+1 < g.rows {
			g.raw(fmt.Sprintf("ADD R%d, R%d", rowC, within), "")
		}
	}
	g.multiply()
	g.finish()
	g.done()
}

// multiply adds up the products over k: first in complete iterations of the loop, then for the remaining values of k.
func (g *neonTile) multiply() {
	const unrolled = 4
	round, rest, single, end := g.label("round"), g.label("rest"), g.label("single"), g.label("summed")
	count := func(by int, label, condition string) {
		g.raw(fmt.Sprintf("SUBS $%d, R%d", by, depth), fmt.Sprintf("subs x%d, x%[1]d, #%d", depth, by))
		g.goTo(label, "B"+condition, "b."+strings.ToLower(condition))
	}
	count(unrolled, rest, "LT")
	g.raw("PCALIGN $32", "")
	g.Label(round)
	for range unrolled {
		g.multiplyOne()
	}
	count(unrolled, round, "GE")
	g.Label(rest)
	g.raw(fmt.Sprintf("ADDS $%d, R%d", unrolled, depth), "")
	g.goTo(end, "BEQ", "")
	g.Label(single)
	g.multiplyOne()
	count(1, single, "NE")
	g.Label(end)
}

func (g *neonTile) multiplyOne() {
	lanes := 16 / g.precision.size
	a, b := g.several((g.rows+lanes-1)/lanes), g.several(g.vectors)
	g.neon.vectors(loads, addressA, a, false, out)
	g.neon.vectors(loads, addressB, b, false, out)
	g.raw(fmt.Sprintf("ADD R%d, R%d", stepA, addressA), fmt.Sprintf("add x%d, x%[1]d, x%d", addressA, stepA))
	g.raw(fmt.Sprintf("ADD R%d, R%d", stepB, addressB), fmt.Sprintf("add x%d, x%[1]d, x%d", addressB, stepB))
	for r := range g.rows {
		for v := range b {
			g.emit(g.byElement("fmla", r%lanes), changed(g.sums[r][v]), in(b[v]), in(a[r/lanes]))
		}
	}
}

func (n *neon) several(count int) (list []vec) {
	for range count {
		list = append(list, n.fresh())
	}
	return list
}

// byElement is the product of a vector with one element of another.
func (g *neonTile) byElement(name string, lane int) opcode {
	bits := map[string]uint32{"fmla": 0x4f801000, "fmul": 0x4f809000}[name]
	arrangement, element := "4s", "s"
	if g.precision.size == 8 {
		arrangement, element = "2d", "d"
		bits |= 1<<22 | uint32(lane)<<11
	} else {
		bits |= uint32(lane>>1)<<11 | uint32(lane&1)<<21
	}
	return opcode{text: fmt.Sprintf("%s v%%d.%s, v%%d.%[2]s, v%%d.%s[%d]", name, arrangement, element, lane), bits: bits, shifts: three}
}

// finish writes alpha times the sums, plus beta C unless beta is 0.
func (g *neonTile) finish() {
	size := g.precision.size
	load := func(at int) vec {
		x := g.fresh()
		register, bits := "s", uint32(0xbd400000)
		if size == 8 {
			register, bits = "d", 0xfd400000
		}
		g.emit(opcode{text: fmt.Sprintf("ldr %s%%d, [x%%d, #%d]", register, at), bits: bits | uint32(at/size)<<10, shifts: two}, out(x), tileArgs.field())
		return x
	}
	alpha := load(tileAlpha)
	for r := range g.rows {
		for v := range g.vectors {
			sum := g.fresh()
			g.emit(g.byElement("fmul", 0), out(sum), in(g.sums[r][v]), in(alpha))
			g.sums[r][v] = sum
		}
	}
	overwrite, end := g.label("overwrite"), g.label("end")
	beta := load(tileAlpha + size)
	if size == 4 {
		g.raw(fmt.Sprintf("MOVWU %d(R%d), R10", tileAlpha+size, tileArgs), "")
		g.raw("LSLW $1, R10", "") // shifts the sign out
	} else {
		g.raw(fmt.Sprintf("MOVD %d(R%d), R10", tileAlpha+size, tileArgs), "")
		g.raw("LSL $1, R10", "")
	}
	g.goTo(overwrite, "CBZ R10,", "")
	write := func(add bool) {
		for r := range g.rows {
			if add {
				old := g.several(g.vectors)
				g.neon.vectors(loads, addressC, old, false, out)
				for v := range g.vectors {
					g.emit(g.byElement("fmla", 0), changed(g.sums[r][v]), in(old[v]), in(beta))
				}
			}
			g.neon.vectors(stores, addressC, g.sums[r], false, in)
			if r+1 < g.rows {
				g.raw(fmt.Sprintf("ADD R%d, R%d", rowC, addressC), "")
			}
		}
	}
	write(true)
	g.jump(end)
	g.Label(overwrite)
	write(false)
	g.Label(end)
}

// neonPack writes the kernels that copy a block of A or B into a panel: rows as they are, or columns as rows.
func neonPack(n *neon) {
	for vectors := 1; vectors <= 4; vectors++ {
		neonPackRows(n, vectors)
	}
	for _, p := range precisions {
		neonTranspose(n, p)
	}
}

func neonPackRows(n *neon, vectors int) {
	name := fmt.Sprintf("packRows_neon_%d", vectors)
	n.function(name, "func(dst, src *byte, rows, step, last int)")
	n.parameters("dst", "src", "rows", "step", "last")
	var labels []string
	for units := 1; units < 4; units++ {
		labels = append(labels, n.label("units"))
		n.raw(fmt.Sprintf("CMP $%d, R4", units), "")
		n.goTo(labels[units-1], "BEQ", "")
	}
	for units := 4; units > 0; units-- {
		if units < 4 {
			n.Label(labels[units-1])
		}
		again := n.label("loop")
		n.Label(again)
		whole, x := n.several(vectors-1), n.fresh()
		n.vectors(loads, 1, whole, false, out)
		at := 16 * (vectors - 1)
		switch units {
		case 4:
			n.vector(loads, 1, at, x, false, 0, out)
		case 1:
			n.emit(opcode{text: fmt.Sprintf("ldr s%%d, [x%%d, #%d]", at), bits: 0xbd400000 | uint32(at/4)<<10, shifts: two}, out(x), gp(1).field())
		default:
			n.emit(opcode{text: fmt.Sprintf("ldr d%%d, [x%%d, #%d]", at), bits: 0xfd400000 | uint32(at/8)<<10, shifts: two}, out(x), gp(1).field())
		}
		if units == 3 {
			n.raw(fmt.Sprintf("ADD $%d, R1, R%d", at+8, within), "")
			n.emit(opcode{text: "ld1 {v%d.s}[2], [x%d], #4", bits: 0x4ddf8000, shifts: two}, changed(x), within.field())
		}
		n.vectors(stores, 0, append(whole, x), true, in)
		n.raw("ADD R3, R1", "")
		n.raw("SUBS $1, R2", "")
		n.goTo(again, "BNE", "")
		n.raw("RET", "")
	}
	n.done()
}

func neonTranspose(n *neon, p precision) {
	name := "transpose" + p.name + "_neon"
	lines := 16 / p.size
	n.function(name, "func(dst, src *byte, dstStep, srcStep, blocks int)")
	n.parameters("dst", "src", "dstStep", "srcStep", "blocks")
	from := []gp{1, 5, 6, 7}[:lines]
	for i := 1; i < lines; i++ {
		n.raw(fmt.Sprintf("ADD R3, R%d, R%d", from[i-1], from[i]), "")
	}
	again := n.label("loop")
	n.Label(again)
	var rows []vec
	for _, line := range from {
		x := n.fresh()
		n.vector(loads, line, 0, x, true, 16, out)
		rows = append(rows, x)
	}
	turn := func(arrangement string, size uint32, x, y vec) (vec, vec) {
		return n.binary(vector3("trn1", arrangement, 0x4e002800|size<<22), x, y), n.binary(vector3("trn2", arrangement, 0x4e006800|size<<22), x, y)
	}
	if p.size == 4 {
		t0, t1 := turn("4s", 2, rows[0], rows[1])
		t2, t3 := turn("4s", 2, rows[2], rows[3])
		rows[0], rows[2] = turn("2d", 3, t0, t2)
		rows[1], rows[3] = turn("2d", 3, t1, t3)
	} else {
		rows[0], rows[1] = turn("2d", 3, rows[0], rows[1])
	}
	for _, column := range rows {
		n.vector(stores, 0, 0, column, false, 0, in)
		n.raw("ADD R2, R0", "")
	}
	n.raw("SUBS $1, R4", "")
	n.goTo(again, "BNE", "")
	n.done()
}

// neonRandom writes Choose of kernel.PCG with the multiplications of general registers: sixteen lanes one after the other, none of
// which waits for the one before.
func neonRandom(n *neon) {
	name := "choose_neon"
	n.function(name, "func(dst []float32, lanes *[36]uint64, bound uint64, below, above float32)")
	for _, line := range strings.Split(strings.TrimSpace(`
MOVD dst_base+0(FP), R0
MOVD dst_len+8(FP), R1
MOVD lanes+24(FP), R2
MOVD bound+32(FP), R3
MOVWU below+40(FP), R4
MOVWU above+44(FP), R5
LDP 256(R2), (R6, R7)
LDP 272(R2), (R8, R9)
MOVD $0xda942042e4dd58b5, R10
MOVD $0x1fffffffffffff, R11
SUBS $16, R1
BLT end
round:
MOVD R2, R12
ADD $128, R2, R16
lane:
MOVD (R12), R13
MOVD 128(R12), R14
UMULH R7, R14, R15
MADD R7, R15, R13, R15
MADD R6, R15, R14, R15
MUL R7, R14, R14
ADDS R9, R14, R14
ADC R8, R15, R13
MOVD R14, 128(R12)
MOVD.P R13, 8(R12)
EOR R13>>32, R13, R13
MUL R10, R13, R13
EOR R13>>48, R13, R13
ORR $1, R14, R14
MUL R14, R13, R13
AND R11, R13, R13
CMP R3, R13
CSEL LO, R4, R5, R15
MOVW.P R15, 4(R0)
CMP R16, R12
BNE lane
SUBS $16, R1
BGE round
end:`), "\n") {
		if label, ok := strings.CutSuffix(line, ":"); ok {
			n.Label(label)
			continue
		}
		n.raw(line, "")
	}
	n.done()
}

// neonTiles writes the micro-kernels of both precisions.
func neonTiles(b *bytes.Buffer) {
	for _, p := range precisions {
		fmt.Fprintf(b, "\nvar tiles%sNEON = tiles[float%[1]s]{\nrows: 8, lanes: %d, vectors: %d, side: %[2]d, whole: true, pack: true,\npackRows: [5]func(dst, src *byte, rows, step, last int){", p.name, 16/p.size, neonVectors)
		for vectors := 1; vectors <= 4; vectors++ {
			fmt.Fprintf(b, "%d: packRows_neon_%[1]d, ", vectors)
		}
		fmt.Fprintf(b, "},\ntranspose: transpose%s_neon,\nmultiply: [13][4]func(*byte){\n", p.name)
		for _, rows := range neonRows {
			fmt.Fprintf(b, "%d: {", rows)
			for vectors := 1; vectors <= neonVectors; vectors++ {
				fmt.Fprintf(b, "%d: tile%s_neon_%dx%[1]d, ", vectors, p.name, rows)
			}
			fmt.Fprint(b, "},\n")
		}
		fmt.Fprint(b, "},\n}\n")
	}
}
