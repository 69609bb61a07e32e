package engine

import (
	"cmp"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// A group becomes one chain: pointwise values and reductions that one pass over one iteration space computes.
type group struct {
	members []*ir.Value // in topological order once fuse has ended
	bounds  []int       // of the iteration space, see boundaries
	size    int         // of the iteration space
}

// fusion assigns pointwise values and reductions to groups.
type fusion struct {
	module  *module
	readers map[*ir.Value][]*ir.Value // who reads a value, reshapes looked through
	groupOf map[*ir.Value]*group
	// messages holds the values of every message, in their order.
	messages map[int][]*ir.Value
}

// fuse partitions the pointwise values and the reductions into groups. It walks against the data flow: a value is computed
// in the pass that uses it (the last one if there are several), and a reduction in the pass that computes its arg.
func fuse(m *module) *fusion {
	f := &fusion{module: m, readers: map[*ir.Value][]*ir.Value{}, groupOf: map[*ir.Value]*group{}, messages: map[int][]*ir.Value{}}
	f.findReaders()
	for i := len(m.values) - 1; i >= 0; i-- {
		if space, ok := spaceOf(m.values[i]); ok {
			f.place(m.values[i], space)
		}
	}
	for _, g := range f.groupOf {
		slices.SortFunc(g.members, func(a, b *ir.Value) int { return cmp.Compare(a.ID, b.ID) })
	}
	return f
}

// spaceOf is the iteration space of a fusible value.
func spaceOf(v *ir.Value) ([]int, bool) {
	switch v.Op.(type) {
	case ir.Pointwise:
		return v.Shape, true
	case ir.Reduction:
		return v.Args[0].Shape, true
	}
	return nil, false
}

func (f *fusion) findReaders() {
	for _, v := range f.module.values {
		if message, ok := ir.MessageOf(v.Op); ok {
			f.messages[message] = append(f.messages[message], v)
		}
		if _, ok := v.Op.(ir.Reshape); ok {
			continue
		}
		for _, a := range v.Args {
			if a = skipReshapes(a); !slices.Contains(f.readers[a], v) {
				f.readers[a] = append(f.readers[a], v)
			}
		}
	}
}

// place opens a group for v and joins it with the groups that read v.
func (f *fusion) place(v *ir.Value, space []int) {
	g := &group{members: []*ir.Value{v}, bounds: boundaries(space), size: volume.Of(space)}
	for _, a := range v.Args {
		if walked, ok := accessOf(a); ok {
			lengths := make([]int, len(walked.axes))
			for i, x := range walked.axes {
				lengths[i] = x.length
			}
			if b, ok := refine(g.bounds, boundaries(lengths)); ok {
				g.bounds = b
			}
		}
	}
	f.groupOf[v] = g
	for _, r := range f.readers[v] {
		if h := f.groupOf[r]; h != nil && h != f.groupOf[v] && inRegister(v, r) {
			f.join(f.groupOf[v], h)
		}
	}
}

// inRegister reports whether r can take v in the pass that computes it: element by element, and not folded first.
func inRegister(v, r *ir.Value) bool {
	if _, ok := v.Op.(ir.Reduction); ok {
		return false
	}
	space, ok := spaceOf(r)
	return ok && volume.Of(space) == volume.Of(v.Shape)
}

// join merges g and h if their spaces have a common factorisation and neither needs the other to be complete.
func (f *fusion) join(g, h *group) {
	if g.size != h.size {
		return
	}
	bounds, ok := refine(g.bounds, h.bounds)
	if !ok || f.needsComplete(g, h) || f.needsComplete(h, g) {
		return
	}
	h.bounds = bounds
	h.members = append(h.members, g.members...)
	for _, v := range g.members {
		f.groupOf[v] = h
	}
}

// needsComplete reports whether to can only start after from has ended: it reads a reduction or a broadcast of from,
// or there is a path between them through something else. Groups are walked as wholes.
func (f *fusion) needsComplete(from, to *group) bool {
	seen := map[*ir.Value]bool{}
	var reached func(values []*ir.Value) bool
	reached = func(values []*ir.Value) bool {
		for _, v := range values {
			if seen[v] {
				continue
			}
			seen[v] = true
			for _, r := range f.readers[v] {
				switch h := f.groupOf[r]; {
				case h == to:
					if f.groupOf[v] != from || !inRegister(v, r) {
						return true
					}
				case h == from:
				case h == nil:
					if reached(f.with(r)) {
						return true
					}
				default:
					if reached(h.members) {
						return true
					}
				}
			}
		}
		return false
	}
	return reached(from.members)
}

// with returns what cannot start before r can: r, and if it belongs to a message the values of that one and of all later ones.
func (f *fusion) with(r *ir.Value) []*ir.Value {
	first, ok := ir.MessageOf(r.Op)
	if !ok {
		return []*ir.Value{r}
	}
	var list []*ir.Value
	for message, values := range f.messages {
		if message >= first {
			list = append(list, values...)
		}
	}
	return list
}

// stored reports whether v must be in memory after its group's pass: it is wanted, read outside of the group, or read in a
// form that no register has.
func (f *fusion) stored(v *ir.Value) bool {
	if slices.ContainsFunc(f.module.wanted, func(w *ir.Value) bool { return skipReshapes(w) == v }) {
		return true
	}
	return slices.ContainsFunc(f.readers[v], func(r *ir.Value) bool {
		return f.groupOf[r] != f.groupOf[v] || !inRegister(v, r)
	})
}
