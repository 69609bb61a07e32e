package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set to write kernels for.
type isa struct {
	name  string
	bytes int // of a vector register
}

var (
	avx2   = isa{"avx2", 32}
	avx512 = isa{"avx512", 64}
)

// asm writes one file. It wraps avo's context in vector operations that mean the same on both instruction sets; each
// returns a new virtual register, so that a kernel reads like a formula.
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

// lanes is how many numbers of that many bytes a register holds.
func (a *asm) lanes(size int) int { return a.bytes / size }

// function starts a function that must not keep its pointers.
func (a *asm) function(name, signature, doc string) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.Pragma("noescape")
	a.SignatureExpr(signature)
	a.Doc(doc)
}

// done leaves the upper halves of the registers clean, without which SSE code after it would be slow, and returns.
func (a *asm) done() {
	a.VZEROUPPER()
	a.RET()
}

// label makes a name that is new in the file.
func (a *asm) label(stem string) string {
	a.labels++
	return fmt.Sprintf("%s%d", stem, a.labels)
}

// vector is a new register of full width.
func (a *asm) vector() reg.VecVirtual {
	if a.wide() {
		return a.ZMM()
	}
	return a.YMM()
}
