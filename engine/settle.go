package engine

import "tessera/engine/ir"

// settle gives memory to views that their consumer cannot read: broadcasts and constants that are wanted, that are below
// another broadcast, or that are read by a matrix product, a transpose, an op of blocks or units, an opaque op, or a message.
func settle(m *module) {
	copies := map[*ir.Value]*ir.Value{}
	held := func(v *ir.Value) *ir.Value {
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
				v.Args[i] = held(a)
			}
		case ir.Broadcast:
			if _, ok := skipReshapes(v.Args[0]).Op.(ir.Broadcast); ok {
				v.Args[0] = held(v.Args[0])
			}
		}
		return v
	})
	for i, w := range m.wanted {
		m.wanted[i] = held(w)
	}
	m.rebuild(func(v *ir.Value) *ir.Value { return v })
}
