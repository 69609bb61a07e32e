package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// array is a slice over which a kernel iterates.
type array struct {
	name        string
	read, write bool
}

// sweep writes the loops of a kernel over its arrays, up to the shortest length: first several vectors per iteration, then
// single vectors, then the remaining elements under a mask. body gets the vectors of the arrays that are read, and returns
// those of the arrays that are written. live is the mask of the valid elements (nil for all), and step is the number of the
// accumulator to use.
type sweep struct {
	*x86
	arrays []array
	unroll int
	body   func(in []vec, live mask, step int) (out []vec)

	left, at reg.GPVirtual
	bases    []reg.GPVirtual
}

func (a *x86) sweep(arrays []array, unroll int, body func(in []vec) []vec) {
	s := &sweep{x86: a, arrays: arrays, unroll: unroll}
	s.body = func(in []vec, _ mask, _ int) []vec { return body(in) }
	s.emit()
}

func (s *sweep) emit() {
	s.start()
	lanes := s.lanes(4)
	one, tail, end := s.label("one"), s.label("tail"), s.label("end")
	if s.unroll > 1 {
		s.loop(s.unroll*lanes, one, func() {
			for i := range s.unroll {
				s.step(i, nil)
			}
		})
	}
	s.Label(one)
	s.loop(lanes, tail, func() { s.step(0, nil) })
	s.Label(tail)
	s.TESTQ(s.left, s.left)
	s.JEQ(operand.LabelRef(end))
	s.step(0, s.maskOf(s.left, 4))
	s.Label(end)
}

// start computes the shortest length of the arrays.
func (s *sweep) start() {
	s.left, s.at = s.GP64(), s.GP64()
	for i, array := range s.arrays {
		base := s.GP64()
		s.Load(s.Param(array.name).Base(), base)
		s.bases = append(s.bases, base)
		if i == 0 {
			s.Load(s.Param(array.name).Len(), s.left)
			continue
		}
		length := s.GP64()
		s.Load(s.Param(array.name).Len(), length)
		s.CMPQ(length, s.left)
		s.CMOVQLT(length, s.left)
	}
	s.XORQ(s.at, s.at)
}

// loop repeats do while at least count elements remain.
func (s *sweep) loop(count int, exit string, do func()) {
	again := s.label("loop")
	s.SUBQ(operand.U32(count), s.left)
	s.JLT(operand.LabelRef(exit + "Restore"))
	s.Label(again)
	do()
	s.ADDQ(operand.U32(count), s.at)
	s.SUBQ(operand.U32(count), s.left)
	s.JGE(operand.LabelRef(again))
	s.Label(exit + "Restore")
	s.ADDQ(operand.U32(count), s.left)
}

// step reads, computes and writes vector i after the current position, completely or under a mask.
func (s *sweep) step(i int, live mask) {
	var in []vec
	for q, array := range s.arrays {
		if array.read {
			in = append(in, s.read(s.address(q, i), live))
		}
	}
	out := s.body(in, live, i)
	for q, array := range s.arrays {
		if !array.write {
			continue
		}
		if live == nil {
			s.VMOVUPS(out[0], s.address(q, i))
		} else {
			s.maskedStore(4, s.register(out[0]), live, s.address(q, i))
		}
		out = out[1:]
	}
}

func (s *sweep) address(array, i int) operand.Mem {
	return operand.Mem{Base: s.bases[array], Index: s.at, Scale: 4, Disp: i * s.bytes}
}

func (s *sweep) read(from operand.Mem, live mask) vec {
	x := s.vector()
	if live == nil {
		s.VMOVUPS(from, x)
	} else {
		s.maskedLoad(4, from, live, x)
	}
	return x
}

// scalar returns a register filled with a parameter.
func (a *x86) scalar(name string) vec {
	at, err := a.Param(name).Resolve()
	if err != nil {
		panic(err) // a parameter that the signature has
	}
	x := a.vector()
	a.VBROADCASTSS(at.Addr, x)
	return x
}
