package engine

import (
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// collapse joins axes that every walk passes as one. Two axes stay if threads share columns and all walks are over matrices.
func (b *chainBuilder[T]) collapse(inColumns bool) {
	c := b.chain
	var walks []*slot[T]
	for i := range c.vectors {
		walks = append(walks, &c.vectors[i])
	}
	for i := range c.scalars {
		walks = append(walks, &c.scalars[i])
	}
	for i := range c.sinks {
		walks = append(walks, &c.sinks[i].slot)
	}
	all := [][]axis{split(contiguous([]int{b.group.size}), b.group.bounds)}
	for _, s := range walks {
		s.axes = append([]axis(nil), s.axes...)
		all = append(all, s.axes)
	}
	joined := collapse(all, !inColumns)
	if c.columns = inColumns && len(joined[0]) == 2; c.columns {
		c.units = joined[0][1].length
	} else if inColumns {
		joined = collapse(all, true)
	}
	for i, s := range walks {
		s.axes = joined[i+1]
	}
	for _, x := range joined[0] {
		c.dims = append(c.dims, x.length)
	}
	if len(c.dims) == 0 { // one element
		c.dims, c.units = []int{1}, 1
		for _, s := range walks {
			s.axes = []axis{{1, 1}}
		}
	}
	for i := range c.sinks {
		s := &c.sinks[i]
		s.across = c.columns || s.axes[0].step == 0
	}
}

// reuse finds written values that can overwrite a read one: both have the same walk, nothing else reads the old value, and
// in every tile its last read comes before the write. The chain then needs less cache.
func (b *chainBuilder[T]) reuse() {
	c := b.chain
	last := make([]int, len(c.vectors)) // instruction that reads a vector last
	read := func(entry, when int) {
		if entry < 0 {
			last[-entry-1] = max(last[-entry-1], when)
		}
	}
	for i, in := range c.code {
		switch in.form {
		case unaryForm, rightForm:
			read(in.a, i)
		case leftForm:
			read(in.b, i)
		case binaryForm:
			read(in.a, i)
			read(in.b, i)
		}
		for _, entry := range in.in {
			read(entry, i)
		}
	}
	for _, s := range c.sinks {
		read(s.source, len(c.code))
	}
	c.over = map[*ir.Value]*ir.Value{}
	taken := map[*ir.Value]bool{}
	for i, in := range c.code {
		if in.dst >= 0 {
			continue
		}
		w := c.vectors[-in.dst-1]
		for j, r := range c.vectors {
			if last[j] <= i && !taken[r.value] && slices.Equal(r.axes, w.axes) && b.replaceable(r.value, w.value) {
				c.over[w.value], taken[r.value] = r.value, true
				break
			}
		}
	}
}

// replaceable reports whether w may be written over r: r is computed elsewhere, and read only by this group.
func (b *chainBuilder[T]) replaceable(r, w *ir.Value) bool {
	switch r.Op.(type) {
	case ir.Product, partialProduct, ir.Transpose, ir.Blockwise, ir.Unitwise:
	default:
		return false // leaves belong to others; chains and opaque ops are left as they are
	}
	if volume.Of(r.Shape) != volume.Of(w.Shape) || slices.ContainsFunc(b.fusion.module.wanted, func(v *ir.Value) bool { return skipReshapes(v) == r }) {
		return false
	}
	return !slices.ContainsFunc(b.fusion.readers[r], func(v *ir.Value) bool { return b.fusion.groupOf[v] != b.group })
}

// order fixes the order of the table: registers, then vectors; fixed numbers, then scalars.
func (b *chainBuilder[T]) order() {
	c := b.chain
	entry := func(i *int) {
		if *i < 0 {
			*i = c.registers - *i - 1
		}
	}
	number := func(i *int) {
		if *i < 0 {
			*i = len(c.fixed) - *i - 1
		}
	}
	for i := range c.code {
		in := &c.code[i]
		entry(&in.dst)
		switch in.form {
		case unaryForm:
			entry(&in.a)
		case binaryForm:
			entry(&in.a)
			entry(&in.b)
		case rightForm:
			entry(&in.a)
			number(&in.b)
		case leftForm:
			number(&in.a)
			entry(&in.b)
		case fillForm:
			number(&in.a)
		}
		for j := range in.in {
			entry(&in.in[j])
		}
	}
	for i := range c.sinks {
		entry(&c.sinks[i].source)
	}
}

// scratch allocates what threads need.
func (b *chainBuilder[T]) scratch(threads int) {
	c := b.chain
	for i := range c.sinks {
		c.sinks[i].allocate(threads)
	}
	most := 0 // args of a foreign function
	for _, in := range c.code {
		most = max(most, len(in.in))
	}
	for range threads {
		t := chainThread[T]{
			table:   apart[[]T](c.registers + len(c.vectors)),
			numbers: apart[T](len(c.fixed) + len(c.scalars)),
			memory:  apart[T](c.registers * tile),
			in:      apart[[]T](most),
			offsets: apart[int](len(c.vectors) + len(c.scalars) + len(c.sinks)),
		}
		copy(t.numbers, c.fixed)
		c.threads = append(c.threads, t)
	}
}

// apart returns n elements that share no cache line with other data: threads that write to one line slow each other down.
func apart[E any](n int) []E {
	const line = 128 // bytes; processors fetch pairs of lines
	return make([]E, n+2*line)[line : line+n : line+n]
}
