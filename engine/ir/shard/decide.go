package shard

import (
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// decision is how the processes compute a value.
type decision struct {
	form     form
	args     []form // what the op reads
	op       ir.Op  // of the process's program
	largest  bool   // the value is the maximum of what the processes have, not one of the forms
	fallback bool   // an arg is images and the op is not understood
}

// decide chooses the decision of a value whose args have theirs.
func (s *sharder) decide(v *ir.Value) {
	d := s.choose(v)
	if d == nil {
		d = &decision{op: v.Op, args: make([]form, len(v.Args))}
		_, product := v.Op.(ir.Product)
		d.fallback = !product && slices.ContainsFunc(v.Args, func(a *ir.Value) bool { return s.formOf(a).kind == images })
	}
	s.decisions[v] = d
	s.talks[v] = d.largest
	for i, a := range v.Args {
		if s.talks[a] || d.args[i].kind != s.formOf(a).kind && s.formOf(a).kind != whole {
			s.talks[v] = true
		}
	}
}

// formOf is the form in which a value is computed.
func (s *sharder) formOf(v *ir.Value) form { return s.decisions[v].form }

// choose returns the decision of an op that the pass understands, nil for the op on whole args.
func (s *sharder) choose(v *ir.Value) *decision {
	switch o := v.Op.(type) {
	case ir.Leaf:
		if o.Kind == ir.InputLeaf {
			return &decision{op: o, form: s.ofInput(v.Shape)}
		}
	case ir.Reshape:
		if f := s.formOf(v.Args[0]); f.kind == images {
			_, ok := s.local(v.Shape, f)
			return s.when(ok, v, f, f)
		}
		return s.linear(v)
	case ir.Broadcast:
		return s.broadcast(v)
	case ir.Pointwise:
		return s.pointwise(v, o)
	case ir.Reduction:
		return s.reduction(v, o)
	case ir.Transpose:
		return s.transpose(v, o)
	case ir.Product:
		return s.product(v, o)
	case ir.Blockwise:
		return s.blocks(v, o)
	case ir.Unitwise:
		return s.units(v, o)
	}
	return nil
}

// when returns the decision for the result and the args, if ok.
func (s *sharder) when(ok bool, v *ir.Value, result form, args ...form) *decision {
	if !ok {
		return nil
	}
	return &decision{op: v.Op, form: result, args: args}
}

// linear decides ops of one arg that are linear: terms stay terms if the arg has no other reader.
func (s *sharder) linear(v *ir.Value) *decision {
	a := v.Args[0]
	return s.when(s.apart(a) && volume.Of(v.Shape) <= volume.Of(a.Shape), v, form{kind: terms}, form{kind: terms})
}

// apart reports whether a is terms that its reader may keep as terms: another reader would need another message, except for
// single numbers, which cost nothing.
func (s *sharder) apart(a *ir.Value) bool {
	return s.formOf(a).kind == terms && (s.readers[a] == 1 || volume.Of(a.Shape) == 1 && s.late[a])
}

func (s *sharder) broadcast(v *ir.Value) *decision {
	f := s.formOf(v.Args[0])
	if f.kind != images {
		return nil
	}
	a, ok := s.locate(v.Args[0].Shape, f)
	return s.when(ok && v.Shape[a.index] == v.Args[0].Shape[a.index], v, at(v.Shape, a.index, a.outer), f)
}

func (s *sharder) pointwise(v *ir.Value, o ir.Pointwise) *decision {
	for _, a := range v.Args {
		if f := s.formOf(a); f.kind == images {
			return s.when(true, v, f, slices.Repeat([]form{f}, len(v.Args))...)
		}
	}
	if !passes(v) {
		return nil
	}
	args := make([]form, len(v.Args))
	count := 0
	for i, a := range v.Args {
		switch {
		case s.apart(a):
			args[i].kind = terms
			count++
		case s.formOf(a).kind == terms || s.talks[a] && !s.late[v]:
			return nil
		}
	}
	one := count == 1 && (o.F == ir.Neg || o.F == ir.Mul || o.F == ir.Div && args[0].kind == terms)
	return s.when(count > 0 && (one || o.F == ir.Add || o.F == ir.Sub), v, form{kind: terms}, args...)
}

func (s *sharder) reduction(v *ir.Value, o ir.Reduction) *decision {
	arg := v.Args[0]
	f := s.formOf(arg)
	if f.kind != images {
		if o.F != ir.Sum {
			return nil
		}
		return s.linear(v)
	}
	a, ok := s.locate(arg.Shape, f)
	if !ok {
		return nil
	}
	axes := o.Axes.List()
	if !slices.Contains(axes, a.index) {
		before := 0
		for _, x := range axes {
			if x < a.index {
				before++
			}
		}
		return s.when(true, v, at(v.Shape, a.index-before, a.outer), f)
	}
	if o.F == ir.Sum {
		return s.when(true, v, form{kind: terms}, f)
	}
	return &decision{op: o, args: []form{f}, largest: true}
}

func (s *sharder) transpose(v *ir.Value, o ir.Transpose) *decision {
	f := s.formOf(v.Args[0])
	if f.kind != images {
		return s.linear(v)
	}
	a, ok := s.locate(v.Args[0].Shape, f)
	return s.when(ok, v, at(v.Shape, slices.Index(o.Axes.List(), a.index), a.outer), f)
}

func (s *sharder) blocks(v *ir.Value, o ir.Blockwise) *decision {
	for _, a := range v.Args {
		f := s.formOf(a)
		if f.kind != images || s.rest(a.Shape, f)%o.Block != 0 {
			continue
		}
		_, ok := s.local(v.Shape, f)
		for _, b := range v.Args {
			_, fits := s.local(b.Shape, f)
			ok = ok && fits
		}
		return s.when(ok, v, f, slices.Repeat([]form{f}, len(v.Args))...)
	}
	return nil
}
