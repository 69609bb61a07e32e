package main

import "github.com/mmcloughlin/avo/operand"

// Operations on vectors of float32, and of int32 if the name contains it. Names that end in D are on vectors of float64. A vec is a
// register or a constant. Results are new registers.
type vec = operand.Op

// mask is the result of a comparison: a mask register, or a vector with ones in the elements for which it holds.
type mask = operand.Op

// machine is what an instruction set offers to kernels that are formulas.
type machine interface {
	kernelName(field string) string
	function(name, signature string) // starts a function that does not retain its pointers
	scalar(name string) vec          // a register filled with a parameter
	sweep(arrays []array, unroll int, body func(in []vec) (out []vec))
	flushDenormals() (restore func())
	done() // returns from the function

	label(stem string) string // is unique in the file
	Label(name string)
	jump(label string)
	skipIf(m mask, label string)     // jumps if an element of the mask, of float32, holds
	skipUnless(m mask, label string) // jumps unless an element of the mask, of float64, holds

	constant(x float64) vec // one repeated float32
	word(bits uint32) vec   // one repeated pattern
	fresh() vec             // a register
	copyOf(x vec) vec
	set(to, from vec) // changes the register to
	add(x, y vec) vec
	sub(x, y vec) vec
	mul(x, y vec) vec
	div(x, y vec) vec
	larger(x, y vec) vec            // x where x > y, else y. It also returns y if one of them is NaN.
	smaller(x, y vec) vec           // x where x < y, else y. It also returns y if one of them is NaN.
	maximum(x, y vec) vec           // the larger of both; NaN where one of them is NaN
	noLess(x vec, low float64) vec  // the larger of both, low != 0; NaN remains NaN
	noMore(x vec, high float64) vec // the smaller of both, high != 0; NaN remains NaN
	and(x, y vec) vec
	or(x, y vec) vec
	xor(x, y vec) vec
	abs(x vec) vec
	sqrt(x vec) vec
	fma(x, y, z vec) vec      // x*y + z with one rounding
	fnma(x, y, z vec) vec     // z - x*y with one rounding
	horner(sum, x, c vec) vec // sum*x + c with one rounding, where sum is a copy that is not needed any more
	round(x vec) vec          // the nearest integer, of two the even one
	addInt(x, y vec) vec
	subInt(x, y vec) vec
	shiftLeft(x vec, bits uint8) vec
	shiftRight(x vec, bits uint8) vec // keeps the sign
	toInt(x vec) vec
	toFloat(x vec) vec
	scale(x, n vec) vec // x 2^n for integers n in float32. The result is rounded once, even if it is denormal or infinite.
	compare(predicate uint8, x, y vec) mask
	choose(m mask, x, y vec) vec // x where m holds, else y
	where(m mask, x vec) vec     // x where m holds, else 0

	double(x float64) vec // one repeated float64
	setD(to, from vec)
	addD(x, y vec) vec
	subD(x, y vec) vec
	mulD(x, y vec) vec
	divD(x, y vec) vec
	andD(x, y vec) vec
	xorD(x, y vec) vec
	noLessD(x vec, low float64) vec
	noMoreD(x vec, high float64) vec
	fmaD(x, y, z vec) vec
	fnmaD(x, y, z vec) vec
	hornerD(sum, x, c vec) vec
	wholeD(x vec) (n vec, scale func(y vec) vec) // the nearest integer n, and the function that returns y 2^n
	compareD(predicate uint8, x, y vec) mask
	chooseD(m mask, x, y vec) vec
	widened(x vec) [2]vec      // both halves in float64
	rounded(halves ...vec) vec // both halves in one vector of float32
	branch(first, second, third mask) branches
	lookup(b branches, name string, each [4]float64) vec // the number of each element's branch
}

// branches tells which of four branches each element takes: an index in AVX-512, places of bytes in NEON, in AVX2 the lowest bit of
// the index where VPERMILPD reads it, and the mask of the last two branches.
type branches struct {
	index vec
	upper mask
}

// asm writes kernels as formulas of operations that any instruction set has.
type asm struct{ machine }

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

func (a *asm) sign(x vec) vec { return a.and(x, a.word(1<<31)) }

// polynomial returns c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
func (a *asm) polynomial(x vec, c ...float64) vec {
	sum := a.copyOf(a.constant(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		sum = a.horner(sum, x, a.constant(c[i]))
	}
	return sum
}

func (a *asm) polynomialD(x vec, c ...float64) vec {
	sum := a.copyOf(a.double(c[len(c)-1]))
	for i := len(c) - 2; i >= 0; i-- {
		sum = a.hornerD(sum, x, a.double(c[i]))
	}
	return sum
}
