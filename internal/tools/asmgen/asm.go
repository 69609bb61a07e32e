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

// asm writes one file. It wraps avo's context in vector operations for both instruction sets. Each operation returns a new
// virtual register, so that a kernel reads like a formula.
type asm struct {
	*build.Context
	isa
	globals map[string]operand.Mem
	labels  int
}

func newAsm(set isa) *asm {
	a := &asm{Context: build.NewContext(), isa: set, globals: map[string]operand.Mem{}}
	a.ConstraintExpr("amd64")
	return a
}

func (a *asm) wide() bool { return a.bytes == 64 }

// lanes returns the number of elements of the given size in bytes that fit into a vector register.
func (a *asm) lanes(size int) int { return a.bytes / size }

// function starts a function that does not retain its pointers.
func (a *asm) function(name, signature, doc string) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.Pragma("noescape")
	a.SignatureExpr(signature)
	a.Doc(doc)
}

// done clears the upper halves of the vector registers, without which subsequent SSE code would be slow, and returns from the
// function.
func (a *asm) done() {
	a.VZEROUPPER()
	a.RET()
}

// label returns a label that is unique in the file.
func (a *asm) label(stem string) string {
	a.labels++
	return fmt.Sprintf("%s%d", stem, a.labels)
}

// vector returns a new vector register of full width.
func (a *asm) vector() reg.VecVirtual {
	if a.wide() {
		return a.ZMM()
	}
	return a.YMM()
}
