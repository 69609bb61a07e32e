package engine

import (
	"fmt"
	"strings"
)

// merge makes equal operations on equal args one value (common subexpressions), and reports whether there were any. Opaque
// ops are left alone: they may keep state.
func merge(m *module) bool {
	seen := map[string]*value{}
	number := map[*value]int{}
	return m.rebuild(func(v *value) *value {
		if _, ok := v.op.(opaque); ok {
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

// mergeKey identifies an operation, its shape and its args. The args of sums and products are ordered by the order in
// which they were first met, so that a+b and b+a are one.
func mergeKey(v *value, number map[*value]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%T %v %v%s", v.op, v.op, v.shape, identity(v.op))
	ids := make([]int, len(v.args))
	for i, a := range v.args {
		if _, ok := number[a]; !ok {
			number[a] = len(number)
		}
		ids[i] = number[a]
	}
	if p, ok := v.op.(pointwise); ok && (p.f == add || p.f == mul) && ids[0] > ids[1] {
		ids[0], ids[1] = ids[1], ids[0]
	}
	if l, ok := v.op.(leaf); ok {
		fmt.Fprintf(&b, " %d", l.index)
	}
	fmt.Fprintf(&b, " %v", ids)
	return b.String()
}

// identity tells ops of the packages' users, and of ours, from others whose text is the same: their texts need not hold
// every attribute, their hashes must.
func identity(o op) string {
	switch o := o.(type) {
	case pointwise:
		if f, ok := o.f.(foreign); ok {
			return fmt.Sprintf(" op %x", f.Hashcode())
		}
	case blockwise:
		return fmt.Sprintf(" op %x", o.kernel.Hashcode())
	case unitwise:
		return fmt.Sprintf(" op %x", o.op.Hashcode())
	}
	return ""
}
