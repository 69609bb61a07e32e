package engine

import (
	"fmt"
	"strings"

	"tessera/engine/ir"
)

// merge makes equal operations on equal args one value (common subexpressions), and reports whether there were any. Opaque
// ops are left alone: they may keep state.
func merge(m *module) bool {
	seen := map[string]*ir.Value{}
	number := map[*ir.Value]int{}
	return m.rebuild(func(v *ir.Value) *ir.Value {
		if _, ok := v.Op.(ir.Foreign); ok {
			return v
		}
		key := mergeKey(v, number)
		if first, ok := seen[key]; ok {
			return first
		}
		seen[key] = v
		return v
	})
}

// mergeKey identifies an operation, its shape and its args. The args of sums and products are sorted by first occurrence, so
// a+b and b+a are one value.
func mergeKey(v *ir.Value, number map[*ir.Value]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%T %v %v%s", v.Op, v.Op, v.Shape, identity(v.Op))
	ids := make([]int, len(v.Args))
	for i, a := range v.Args {
		if _, ok := number[a]; !ok {
			number[a] = len(number)
		}
		ids[i] = number[a]
	}
	if p, ok := v.Op.(ir.Pointwise); ok && (p.F == ir.Add || p.F == ir.Mul) && ids[0] > ids[1] {
		ids[0], ids[1] = ids[1], ids[0]
	}
	if l, ok := v.Op.(ir.Leaf); ok {
		fmt.Fprintf(&b, " %d", l.Index)
	}
	fmt.Fprintf(&b, " %v", ids)
	return b.String()
}

// identity distinguishes ops with equal texts: the text of an op need not have every attribute, but its hash must.
func identity(o ir.Op) string {
	switch o := o.(type) {
	case ir.Pointwise:
		if f, ok := o.F.(ir.Elementwise); ok {
			return fmt.Sprintf(" op %x", f.Hashcode())
		}
	case ir.Blockwise:
		return fmt.Sprintf(" op %x", o.Kernel.Hashcode())
	case ir.Unitwise:
		return fmt.Sprintf(" op %x", o.Kernel.Hashcode())
	}
	return ""
}
