package engine

import (
	"cmp"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// group is a set of pointwise values and reductions that are computed in one pass over one iteration space. It becomes
// one chain.
type group struct {
	members []*ir.Value // in topological order after fuse
	bounds  []int       // boundaries of the iteration space
	size    int         // size of the iteration space
}

// fusion assigns pointwise values and reductions to groups.
type fusion struct {
	module  *module
	readers map[*ir.Value][]*ir.Value // readers of a value, directly or through reshapes
	groupOf map[*ir.Value]*group
	// messages maps the number of a message to its values, in order.
	messages map[int][]*ir.Value
}

// fuse partitions the pointwise values and the reductions into groups. It visits values against the data flow. A
// pointwise value is computed in the pass that uses it, the last such pass if there are several. A reduction is
// computed in the pass that computes its arg.
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

// spaceOf returns the iteration space of a value; ok is false if the value cannot be fused.
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
			lengths := lists.Map(walked.axes, func(x axis) int { return x.length })
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

// inRegister reports whether r can read v from a register in the pass that computes v: r reads v element by element,
// and v is not a reduction.
func inRegister(v, r *ir.Value) bool {
	if _, ok := v.Op.(ir.Reduction); ok {
		return false
	}
	space, ok := spaceOf(r)
	return ok && volume.Of(space) == volume.Of(v.Shape)
}

// join merges g and h if their spaces have a common factorisation and neither needs complete results of the other.
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

// needsComplete reports whether one group can start only after another group has ended. This is so if the group to
// reads a reduction or a broadcast of the group from, or if a path through other values connects them. A path that
// enters another group continues from all members of that group.
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
					if reached(f.blocked(r)) {
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

// blocked returns the values that must wait for r. If r belongs to a message, they are the values of this message and
// of all later ones; otherwise only r itself.
func (f *fusion) blocked(r *ir.Value) []*ir.Value {
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

// stored reports whether v must be in memory after the pass of its group: v is wanted, or one of its readers cannot
// read the register.
func (f *fusion) stored(v *ir.Value) bool {
	if slices.ContainsFunc(f.module.wanted, func(w *ir.Value) bool { return skipReshapes(w) == v }) {
		return true
	}
	return slices.ContainsFunc(f.readers[v], func(r *ir.Value) bool {
		return f.groupOf[r] != f.groupOf[v] || !inRegister(v, r)
	})
}

// axis is one factor of an iteration space with its stride in a buffer. Stride 0 repeats the same elements.
type axis struct{ length, step int }

// access describes how a chain accesses a buffer: axes from the slowest to the fastest.
type access struct {
	base *ir.Value // value in memory; never a reshape or a broadcast
	axes []axis
}

// accessOf describes how to read v through reshapes and one broadcast. ok is false for a broadcast of a broadcast,
// which materializeViews removes.
func accessOf(v *ir.Value) (a access, ok bool) {
	v = skipReshapes(v)
	if _, ok := v.Op.(ir.Broadcast); !ok {
		return access{base: v, axes: contiguous(v.Shape)}, true
	}
	from := v.Args[0]
	base := skipReshapes(from)
	if _, nested := base.Op.(ir.Broadcast); nested {
		return access{}, false
	}
	axes := make([]axis, len(v.Shape))
	step := 1
	for i := len(v.Shape) - 1; i >= 0; i-- {
		axes[i] = axis{v.Shape[i], 0}
		if from.Shape[i] == v.Shape[i] && from.Shape[i] > 1 {
			axes[i].step = step
		}
		step *= from.Shape[i]
	}
	return access{base: base, axes: axes}, true
}

func skipReshapes(v *ir.Value) *ir.Value {
	for {
		if _, ok := v.Op.(ir.Reshape); !ok {
			return v
		}
		v = v.Args[0]
	}
}

// contiguous returns the axes of a row-major tensor of the given shape.
func contiguous(shape []int) []axis {
	axes := make([]axis, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		axes[i] = axis{shape[i], step}
		step *= shape[i]
	}
	return axes
}

// boundaries returns the products of the lengths of the last 1, 2, ... axes. They describe how the axes divide an
// iteration space. Axes of length 1 are skipped.
func boundaries(shape []int) []int {
	b := []int{1}
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] > 1 {
			n *= shape[i]
			b = append(b, n)
		}
	}
	return b
}

// refine merges the boundaries a and b of two spaces of equal size. ok is false if the spaces have no common
// factorisation.
func refine(a, b []int) (united []int, ok bool) {
	united = slices.Concat(a, b)
	slices.Sort(united)
	united = slices.Compact(united)
	for i := 1; i < len(united); i++ {
		if united[i]%united[i-1] != 0 {
			return nil, false
		}
	}
	return united, true
}

// split divides axes at the boundaries bounds of a finer space. Axes are listed from the slowest to the fastest.
func split(axes []axis, bounds []int) []axis {
	var out []axis
	inner := 1 // product of the lengths of the axes handled so far, starting with the fastest axis
	k := 1
	for i := len(axes) - 1; i >= 0; i-- {
		rest, step := axes[i].length, axes[i].step
		for rest > 1 {
			length := bounds[k] / inner
			out = append(out, axis{length, step})
			step *= length
			rest /= length
			inner = bounds[k]
			k++
		}
	}
	slices.Reverse(out)
	return out
}

// collapse merges neighbouring axes that every access can traverse as one axis. The slowest axis is merged only if flat
// is true and all axes become one. All lists of axes must have the same length.
func collapse(all [][]axis, flat bool) (joined [][]axis) {
	if len(all) == 0 || len(all[0]) == 0 {
		return all
	}
	joinable := func(i int) bool { // reports whether axes i and i+1 can be merged
		return !slices.ContainsFunc(all, func(axes []axis) bool { return axes[i].step != axes[i+1].step*axes[i+1].length })
	}
	n := len(all[0])
	for i := 0; i+1 < n; i++ {
		flat = flat && joinable(i)
	}
	joined = make([][]axis, len(all))
	for i := 0; i < n; i++ {
		join := i > 0 && joinable(i-1) && (flat || i > 1)
		for j, axes := range all {
			if join {
				last := &joined[j][len(joined[j])-1]
				*last = axis{last.length * axes[i].length, axes[i].step}
			} else {
				joined[j] = append(joined[j], axes[i])
			}
		}
	}
	return joined
}
