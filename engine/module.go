package engine

import (
	"tessera/engine/ir"
)

// module is a program under compilation.
type module struct {
	values []*ir.Value // in topological order; a value's ID is its place
	wanted []*ir.Value // taps, gradients and updates, in the order of ir.Module.Wanted
	// trained[i] is set if a gradient with respect to parameter i is wanted.
	trained []bool
}

// newModule copies a program, so that passes can change its values.
func newModule(program *ir.Module) *module {
	program = program.Clone()
	m := &module{wanted: program.Wanted(), trained: make([]bool, len(program.Parameters))}
	for _, g := range program.Gradients {
		m.trained[g.Parameter] = true
	}
	m.values = ir.Sorted(m.wanted)
	return m
}

// rebuild visits every value that the wanted ones need, args first, and replaces each by what f returns for it (with its
// args replaced already). Every pass uses it. Values that are no longer needed drop out. It reports whether f replaced any
// value.
func (m *module) rebuild(f func(*ir.Value) *ir.Value) (changed bool) {
	done := map[*ir.Value]*ir.Value{}
	var visit func(*ir.Value) *ir.Value
	visit = func(v *ir.Value) *ir.Value {
		if r, ok := done[v]; ok {
			return r
		}
		for i, a := range v.Args {
			v.Args[i] = visit(a)
		}
		r := f(v)
		if r != v {
			changed = true
			r = visit(r) // a rewritten value may be rewritten again
		}
		done[v] = r
		done[r] = r
		return r
	}
	for i, w := range m.wanted {
		m.wanted[i] = visit(w)
	}
	m.values = ir.Sorted(m.wanted)
	return changed
}

// readers counts who reads each value, wanted ones included.
func (m *module) readers() map[*ir.Value]int {
	n := map[*ir.Value]int{}
	for _, v := range m.values {
		for _, a := range v.Args {
			n[a]++
		}
	}
	for _, w := range m.wanted {
		n[w]++
	}
	return n
}

// String lists the values, one per line.
func (m *module) String() string { return ir.Text(m.values) }

// materializeViews gives memory to views that their consumer cannot read: broadcasts and constants that are wanted, that are below
// another broadcast, or that are read by a matrix product, a transpose, an op of blocks or units, an opaque op, or a message.
func materializeViews(m *module) {
	copies := map[*ir.Value]*ir.Value{}
	materialized := func(v *ir.Value) *ir.Value {
		switch skipReshapes(v).Op.(type) {
		case ir.Broadcast, ir.Constant:
			if c, ok := copies[v]; ok {
				return c
			}
			c := &ir.Value{Op: ir.Pointwise{F: ir.Copy}, Args: []*ir.Value{v}, Shape: v.Shape}
			copies[v] = c
			return c
		}
		return v
	}
	m.rebuild(func(v *ir.Value) *ir.Value {
		switch v.Op.(type) {
		case ir.Product, ir.Transpose, ir.Blockwise, ir.Unitwise, ir.Foreign, ir.AllReduce, ir.AllGather:
			for i, a := range v.Args {
				v.Args[i] = materialized(a)
			}
		case ir.Broadcast:
			if _, ok := skipReshapes(v.Args[0]).Op.(ir.Broadcast); ok {
				v.Args[0] = materialized(v.Args[0])
			}
		}
		return v
	})
	for i, w := range m.wanted {
		m.wanted[i] = materialized(w)
	}
	m.rebuild(func(v *ir.Value) *ir.Value { return v })
}
