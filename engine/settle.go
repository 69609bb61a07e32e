package engine

// settle gives memory to values that are only views where their consumer cannot read a view: a broadcast that a matrix
// product, a transpose, an op of blocks or units or an opaque one reads, that is wanted, or that lies below another broadcast; and constants there.
func settle(m *module) {
	copies := map[*value]*value{}
	held := func(v *value) *value {
		switch skipReshapes(v).op.(type) {
		case broadcast, constant:
			if c, ok := copies[v]; ok {
				return c
			}
			c := &value{op: pointwise{copied}, args: []*value{v}, shape: v.shape}
			copies[v] = c
			return c
		}
		return v
	}
	m.rebuild(func(v *value) *value {
		switch v.op.(type) {
		case product, transpose, blockwise, unitwise, opaque:
			for i, a := range v.args {
				v.args[i] = held(a)
			}
		case broadcast:
			if _, ok := skipReshapes(v.args[0]).op.(broadcast); ok {
				v.args[0] = held(v.args[0])
			}
		}
		return v
	})
	for i, w := range m.wanted {
		m.wanted[i] = held(w)
	}
	m.rebuild(func(v *value) *value { return v })
}
