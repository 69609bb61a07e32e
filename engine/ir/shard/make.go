package shard

import (
	"fmt"
	"slices"

	"tessera/engine/ir"
)

// as returns a value of the whole program in a form, for the process's program.
func (s *sharder) as(v *ir.Value, f form) *ir.Value {
	key := request{v, f}
	if made := s.made[key]; made != nil {
		return made
	}
	made := s.converted(v, f)
	s.made[key] = made
	return made
}

// converted makes a value in its form, or in another one from that.
func (s *sharder) converted(v *ir.Value, f form) *ir.Value {
	have := s.formOf(v)
	switch {
	case have == f:
		return s.compute(v)
	case f.kind == images:
		return s.take(v, f)
	case f.kind == terms:
		return s.once(v)
	case have.kind == terms:
		return &ir.Value{Op: ir.AllReduce{F: ir.Sum}, Args: []*ir.Value{s.as(v, have)}, Shape: v.Shape}
	}
	return s.gather(v, have)
}

// compute makes a value in its form.
func (s *sharder) compute(v *ir.Value) *ir.Value {
	d := s.decisions[v]
	made := &ir.Value{Op: d.op, Shape: v.Shape, Name: v.Name, Layer: v.Layer}
	if d.form.kind == images {
		made.Shape, _ = s.local(v.Shape, d.form)
	}
	scales := d.form.kind == terms && scaling(v)
	for i, a := range v.Args {
		s.reader, s.fallback = v, d.fallback
		if f := d.args[i]; d.form.kind == terms && f.kind == whole && !scales {
			made.Args = append(made.Args, s.as(a, form{kind: terms})) // the addend of one process
		} else {
			made.Args = append(made.Args, s.as(a, f))
		}
	}
	if d.largest {
		return &ir.Value{Op: ir.AllReduce{F: ir.Largest}, Args: []*ir.Value{made}, Shape: v.Shape}
	}
	return made
}

// scaling reports whether an op on terms multiplies them by whole values, rather than adding.
func scaling(v *ir.Value) bool {
	p, ok := v.Op.(ir.Pointwise)
	return ok && p.F != ir.Add && p.F != ir.Sub
}

// once returns a whole value as terms: process 0 adds it, the others add 0.
func (s *sharder) once(v *ir.Value) *ir.Value {
	factor := 0.0
	if s.rank == 0 {
		factor = 1
	}
	return &ir.Value{Op: ir.Pointwise{F: ir.Mul}, Args: []*ir.Value{s.as(v, form{}), ir.Uniform(factor, v.Shape)}, Shape: v.Shape}
}

// gather returns a value in the form images as a whole. Values that differ in layout only share a message.
func (s *sharder) gather(v *ir.Value, f form) *ir.Value {
	switch v.Op.(type) {
	case ir.Reshape, ir.Transpose:
		return &ir.Value{Op: v.Op, Args: []*ir.Value{s.as(v.Args[0], form{})}, Shape: v.Shape}
	}
	s.gathers = append(s.gathers, Gather{fmt.Sprintf("%v%v", v.Op, v.Shape), fmt.Sprintf("%v%v", s.reader.Op, s.reader.Shape), size(v), s.fallback})
	return &ir.Value{Op: ir.AllGather{Outer: f.outer, Batch: s.batch, Processes: s.size}, Args: []*ir.Value{s.as(v, f)}, Shape: v.Shape}
}

// take returns the process's images of a value that is whole, terms, or images in another order. Broadcasts and
// element-wise values are computed for these images; nothing of the whole batch is made for them.
func (s *sharder) take(v *ir.Value, f form) *ir.Value {
	part, ok := s.local(v.Shape, f)
	if ok && s.formOf(v).kind == whole {
		switch v.Op.(type) {
		case ir.Reshape:
			if _, fits := s.local(v.Args[0].Shape, f); fits {
				return &ir.Value{Op: v.Op, Args: []*ir.Value{s.as(v.Args[0], f)}, Shape: part}
			}
		case ir.Broadcast:
			return &ir.Value{Op: v.Op, Args: []*ir.Value{s.takeNarrow(v.Args[0], v.Shape, f)}, Shape: part}
		case ir.Pointwise:
			made := &ir.Value{Op: v.Op, Shape: part}
			for _, a := range v.Args {
				made.Args = append(made.Args, s.as(a, f))
			}
			return made
		}
	}
	s.reader, s.fallback = v, true
	return s.cut(s.as(v, form{}), v.Shape, part, f)
}

// takeNarrow returns what a broadcast to the process's images of that shape reads: all of its arg if the arg has length 1
// along the batch.
func (s *sharder) takeNarrow(arg *ir.Value, shape []int, f form) *ir.Value {
	a, _ := s.locate(shape, f)
	if arg.Shape[a.index] == 1 {
		return s.as(arg, form{})
	}
	return s.as(arg, at(arg.Shape, a.index, a.outer))
}

// collectives lists the values with an op of several processes, args first.
func collectives(m *ir.Module) []*ir.Value {
	return slices.DeleteFunc(m.Values(), func(v *ir.Value) bool {
		_, ok := ir.MessageOf(v.Op)
		return !ok
	})
}
