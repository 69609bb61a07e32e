package main

import (
	"fmt"
	"math"
)

// The places of registers in instructions.
var (
	one   = []uint{0}
	two   = []uint{0, 5}
	three = []uint{0, 5, 16}
	pair  = []uint{0, 10, 5} // loads and stores of two registers
)

// vector3 is an instruction with three vectors of the same arrangement, vector2 one with two.
func vector3(name, arrangement string, bits uint32) opcode {
	return opcode{text: fmt.Sprintf("%s v%%d.%s, v%%d.%[2]s, v%%d.%[2]s", name, arrangement), bits: bits, shifts: three}
}

func vector2(name, arrangement string, bits uint32) opcode {
	return opcode{text: fmt.Sprintf("%s v%%d.%s, v%%d.%[2]s", name, arrangement), bits: bits, shifts: two}
}

var (
	opMove = vector3("orr", "16b", 0x4ea01c00)
	opBsl  = vector3("bsl", "16b", 0x6e601c00)
	opBit  = vector3("bit", "16b", 0x6ea01c00)
	opBif  = vector3("bif", "16b", 0x6ee01c00)
	opFmla = vector3("fmla", "4s", 0x4e20cc00)
	opFmls = vector3("fmls", "4s", 0x4ea0cc00)
	fmlaD  = vector3("fmla", "2d", 0x4e60cc00)
	fmlsD  = vector3("fmls", "2d", 0x4ee0cc00)
	opAnd  = vector3("and", "16b", 0x4e201c00)
	opBic  = vector3("bic", "16b", 0x4e601c00)
	opAddD = vector3("add", "2d", 0x4ee08400)
)

func (n *neon) binary(op opcode, x, y vec) vec {
	z := n.fresh()
	n.emit(op, out(z), in(x), in(y))
	return z
}

func (n *neon) unary(op opcode, x vec) vec {
	z := n.fresh()
	n.emit(op, out(z), in(x))
	return z
}

// fused adds the product of x and y to a copy of z, or subtracts it.
func (n *neon) fused(op opcode, x, y, z vec) vec {
	sum := n.copyOf(z)
	n.emit(op, changed(sum), in(x), in(y))
	return sum
}

func (n *neon) constant(x float64) vec { return n.word(math.Float32bits(float32(x))) }

func (n *neon) word(bits uint32) vec {
	twice := uint64(bits)<<32 | uint64(bits)
	return n.literal(twice, twice)
}

func (n *neon) double(x float64) vec { return n.literal(math.Float64bits(x), math.Float64bits(x)) }

func (n *neon) copyOf(x vec) vec {
	z := n.fresh()
	n.set(z, x)
	return z
}

func (n *neon) set(to, from vec) {
	n.code = append(n.code, inst{kind: move, fields: []field{out(to), in(from)}})
}

func (n *neon) setD(to, from vec) { n.set(to, from) }

func (n *neon) add(x, y vec) vec     { return n.binary(vector3("fadd", "4s", 0x4e20d400), x, y) }
func (n *neon) sub(x, y vec) vec     { return n.binary(vector3("fsub", "4s", 0x4ea0d400), x, y) }
func (n *neon) mul(x, y vec) vec     { return n.binary(vector3("fmul", "4s", 0x6e20dc00), x, y) }
func (n *neon) div(x, y vec) vec     { return n.binary(vector3("fdiv", "4s", 0x6e20fc00), x, y) }
func (n *neon) maximum(x, y vec) vec { return n.binary(vector3("fmax", "4s", 0x4e20f400), x, y) }
func (n *neon) minimum(x, y vec) vec { return n.binary(vector3("fmin", "4s", 0x4ea0f400), x, y) }
func (n *neon) and(x, y vec) vec     { return n.binary(opAnd, x, y) }
func (n *neon) or(x, y vec) vec      { return n.binary(vector3("orr", "16b", 0x4ea01c00), x, y) }
func (n *neon) xor(x, y vec) vec     { return n.binary(vector3("eor", "16b", 0x6e201c00), x, y) }
func (n *neon) addInt(x, y vec) vec  { return n.binary(vector3("add", "4s", 0x4ea08400), x, y) }
func (n *neon) subInt(x, y vec) vec  { return n.binary(vector3("sub", "4s", 0x6ea08400), x, y) }

// larger and smaller do not use the instructions for maxima, which order zeros by their signs and treat NaN otherwise.
func (n *neon) larger(x, y vec) vec  { return n.choose(n.compare(moreThan, x, y), x, y) }
func (n *neon) smaller(x, y vec) vec { return n.choose(n.compare(lessThan, x, y), x, y) }

func (n *neon) noLess(x vec, low float64) vec  { return n.maximum(x, n.constant(low)) }
func (n *neon) noMore(x vec, high float64) vec { return n.minimum(x, n.constant(high)) }

func (n *neon) abs(x vec) vec     { return n.unary(vector2("fabs", "4s", 0x4ea0f800), x) }
func (n *neon) sqrt(x vec) vec    { return n.unary(vector2("fsqrt", "4s", 0x6ea1f800), x) }
func (n *neon) round(x vec) vec   { return n.unary(vector2("frintn", "4s", 0x4e218800), x) }
func (n *neon) toInt(x vec) vec   { return n.unary(vector2("fcvtns", "4s", 0x4e21a800), x) }
func (n *neon) toFloat(x vec) vec { return n.unary(vector2("scvtf", "4s", 0x4e21d800), x) }

func (n *neon) fma(x, y, z vec) vec      { return n.fused(opFmla, x, y, z) }
func (n *neon) fnma(x, y, z vec) vec     { return n.fused(opFmls, x, y, z) }
func (n *neon) horner(sum, x, c vec) vec { return n.fma(sum, x, c) }

func (n *neon) shift(name, arrangement string, bits uint32, x vec, by uint8) vec {
	return n.unary(opcode{text: fmt.Sprintf("%s v%%d.%s, v%%d.%[2]s, #%d", name, arrangement, by), bits: bits, shifts: two}, x)
}

func (n *neon) shiftLeft(x vec, bits uint8) vec {
	return n.shift("shl", "4s", 0x4f205400+uint32(bits)<<16, x, bits)
}

func (n *neon) shiftRight(x vec, bits uint8) vec {
	return n.shift("sshr", "4s", 0x4f200400+uint32(32-bits)<<16, x, bits)
}

func (n *neon) scale(x, y vec) vec {
	whole := n.toInt(y)
	half := n.shiftRight(whole, 1)
	power := func(e vec) vec { return n.shiftLeft(n.addInt(e, n.word(127)), 23) }
	return n.mul(n.mul(x, power(half)), power(n.subInt(whole, half)))
}

// lanesWhere is a mask: the elements of ones or, with not, those of zeros.
type lanesWhere struct {
	v   *virtual
	not bool
}

func (lanesWhere) Asm() string { return "" }

func (n *neon) compare(predicate uint8, x, y vec) mask {
	return n.compareBy(predicate, x, y, vector3("fcmgt", "4s", 0x6ea0e400), vector3("fcmge", "4s", 0x6e20e400), vector3("fcmeq", "4s", 0x4e20e400))
}

func (n *neon) compareD(predicate uint8, x, y vec) mask {
	return n.compareBy(predicate, x, y, vector3("fcmgt", "2d", 0x6ee0e400), vector3("fcmge", "2d", 0x6e60e400), vector3("fcmeq", "2d", 0x4e60e400))
}

func (n *neon) compareBy(predicate uint8, x, y vec, more, least, same opcode) mask {
	by := map[uint8]struct {
		op        opcode
		turn, not bool
	}{
		equal: {same, false, false}, notEqual: {same, false, true}, unordered: {same, false, true},
		moreThan: {more, false, false}, lessThan: {more, true, false},
		atLeast: {least, false, false}, atMost: {least, true, false}, notAtLeast: {least, false, true}, notAtMost: {least, true, true},
	}[predicate]
	if by.turn {
		x, y = y, x
	}
	return lanesWhere{register(n.binary(by.op, x, y)), by.not}
}

func (n *neon) choose(m mask, x, y vec) vec {
	where := m.(lanesWhere)
	if where.not {
		x, y = y, x
	}
	z := n.fresh()
	n.code = append(n.code, inst{kind: pick, fields: []field{out(z), in(where.v), in(x), in(y)}})
	return z
}

func (n *neon) chooseD(m mask, x, y vec) vec { return n.choose(m, x, y) }

func (n *neon) where(m mask, x vec) vec {
	if where := m.(lanesWhere); where.not {
		return n.binary(opBic, x, where.v)
	}
	return n.binary(opAnd, x, m)
}

// any compares a mask with none and jumps to the label if an element holds or, if not, if none does.
func (n *neon) any(m mask, label string, holds bool) {
	where, most := m.(lanesWhere), n.fresh()
	op, zero := opcode{text: "umaxv s%d, v%d.4s", bits: 0x6eb0a800, shifts: two}, !holds
	if where.not {
		op, zero = opcode{text: "uminv s%d, v%d.4s", bits: 0x6eb1a800, shifts: two}, holds
	}
	n.emit(op, out(most), in(where.v))
	n.emit(opcode{text: "fmov w10, s%d", bits: 0x1e26000a, shifts: []uint{5}}, in(most))
	if zero {
		n.goTo(label, "CBZW R10,", "cbz w10,")
	} else {
		n.goTo(label, "CBNZW R10,", "cbnz w10,")
	}
}

func (n *neon) skipIf(m mask, label string)     { n.any(m, label, true) }
func (n *neon) skipUnless(m mask, label string) { n.any(m, label, false) }

func (n *neon) addD(x, y vec) vec { return n.binary(vector3("fadd", "2d", 0x4e60d400), x, y) }
func (n *neon) subD(x, y vec) vec { return n.binary(vector3("fsub", "2d", 0x4ee0d400), x, y) }
func (n *neon) mulD(x, y vec) vec { return n.binary(vector3("fmul", "2d", 0x6e60dc00), x, y) }
func (n *neon) divD(x, y vec) vec { return n.binary(vector3("fdiv", "2d", 0x6e60fc00), x, y) }
func (n *neon) andD(x, y vec) vec { return n.and(x, y) }
func (n *neon) xorD(x, y vec) vec { return n.xor(x, y) }

func (n *neon) noLessD(x vec, low float64) vec {
	return n.binary(vector3("fmax", "2d", 0x4e60f400), x, n.double(low))
}

func (n *neon) noMoreD(x vec, high float64) vec {
	return n.binary(vector3("fmin", "2d", 0x4ee0f400), x, n.double(high))
}

func (n *neon) fmaD(x, y, z vec) vec      { return n.fused(fmlaD, x, y, z) }
func (n *neon) fnmaD(x, y, z vec) vec     { return n.fused(fmlsD, x, y, z) }
func (n *neon) hornerD(sum, x, c vec) vec { return n.fmaD(sum, x, c) }

func (n *neon) wholeD(x vec) (float vec, scale func(y vec) vec) {
	whole := n.unary(vector2("fcvtns", "2d", 0x4e61a800), x)
	float = n.unary(vector2("scvtf", "2d", 0x4e61d800), whole)
	return float, func(y vec) vec {
		power := n.binary(opAddD, whole, n.literal(1023, 1023))
		return n.mulD(y, n.shift("shl", "2d", 0x4f405400+52<<16, power, 52))
	}
}

func (n *neon) widened(x vec) (halves [2]vec) {
	return [2]vec{n.unary(opcode{text: "fcvtl v%d.2d, v%d.2s", bits: 0x0e617800, shifts: two}, x),
		n.unary(opcode{text: "fcvtl2 v%d.2d, v%d.4s", bits: 0x4e617800, shifts: two}, x)}
}

func (n *neon) rounded(halves ...vec) vec {
	z := n.unary(opcode{text: "fcvtn v%d.2s, v%d.2d", bits: 0x0e616800, shifts: two}, halves[0])
	n.emit(opcode{text: "fcvtn2 v%d.4s, v%d.2d", bits: 0x4e616800, shifts: two}, changed(z), in(halves[1]))
	return z
}

// branch returns the places of the bytes of each element's branch in a table of four numbers: eight bytes further for every mask that holds.
func (n *neon) branch(first, second, third mask) branches {
	const eight, places = 0x0808080808080808, 0x0706050403020100
	index := n.literal(places, places)
	for _, m := range []mask{first, second, third} {
		index = n.binary(opAddD, index, n.where(m, n.literal(eight, eight)))
	}
	return branches{index: index}
}

// lookup reads the number of each element's branch from a table in two consecutive registers.
func (n *neon) lookup(b branches, _ string, each [4]float64) vec {
	low := register(n.literal(math.Float64bits(each[0]), math.Float64bits(each[1]))).constant.at
	high := register(n.literal(math.Float64bits(each[2]), math.Float64bits(each[3]))).constant.at
	load := func(to, at int) {
		n.emit(opcode{text: fmt.Sprintf("ldr q%d, [x%d, #%d]", to, poolBase, at), bits: 0x3dc00000 | uint32(at/16)<<10 | uint32(poolBase)<<5 | uint32(to)})
	}
	load(tableFirst, low)
	load(tableFirst+1, high)
	z := n.fresh()
	n.emit(opcode{text: "tbl v%d.16b, {v30.16b, v31.16b}, v%d.16b", bits: 0x4e002000 | tableFirst<<5, shifts: []uint{0, 16}}, out(z), in(b.index))
	return z
}

const tableFirst = 30 // register of lookup's table; the next one is its second half
