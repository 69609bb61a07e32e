package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set for which kernels are written.
type isa struct {
	name  string
	bytes int // size of a vector register in bytes
}

var (
	avx2   = isa{"avx2", 32}
	avx512 = isa{"avx512", 64}
)

// x86 writes one file for amd64. It wraps avo's context in vector operations for both instruction sets. Each operation returns a new
// virtual register, so that a kernel reads like a formula.
type x86 struct {
	*build.Context
	isa
	globals map[string]operand.Mem
	labels  int
}

func newX86(set isa) *x86 {
	a := &x86{Context: build.NewContext(), isa: set, globals: map[string]operand.Mem{}}
	a.ConstraintExpr("amd64")
	return a
}

func (a *x86) wide() bool { return a.bytes == 64 }

// lanes returns the number of elements of the given size in bytes that fit into a vector register.
func (a *x86) lanes(size int) int { return a.bytes / size }

// function starts a function that does not retain its pointers.
func (a *x86) function(name, signature string) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.Pragma("noescape")
	a.SignatureExpr(signature)
}

// done clears the upper halves of the vector registers, without which subsequent SSE code would be slow, and returns from the
// function.
func (a *x86) done() {
	a.VZEROUPPER()
	a.RET()
}

// label returns a label that is unique in the file.
func (a *x86) label(stem string) string {
	a.labels++
	return fmt.Sprintf("%s%d", stem, a.labels)
}

// vector returns a new vector register of full width.
func (a *x86) vector() reg.VecVirtual {
	if a.wide() {
		return a.ZMM()
	}
	return a.YMM()
}

// flushDenormals makes the processor treat denormals as 0 until restore is called. If a gradient remains 0, a decaying state
// would become denormal and stay so (0.9 times one of the smallest denormals is rounded to the same number), and an operation
// on a denormal takes a hundred times longer.
func (a *x86) flushDenormals() (restore func()) {
	const flushToZero, denormalsAreZero = 1 << 15, 1 << 6
	saved, flushing := a.AllocLocal(8), a.AllocLocal(8)
	modes := a.GP32()
	a.STMXCSR(saved)
	a.MOVL(saved, modes)
	a.ORL(operand.U32(flushToZero|denormalsAreZero), modes)
	a.MOVL(modes, flushing)
	a.LDMXCSR(flushing)
	return func() { a.LDMXCSR(saved) }
}
