package engine

import (
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

// keeper knows the elements of a matrix that an op with a selection copies; all others are 0. No other value shares its
// memory, so a run clears the elements of the last run instead of whole rows. Products and chains that read it visit the elements alone.
// A row with too many elements has no list: whoever reads it visits the whole row.
type keeper[T ir.Float] struct {
	op      ir.Blockwise
	by      []*cell[T] // determine which elements are kept
	like    *kernel.Kept
	to      *cell[T]
	n       int // length of a row
	threads []keeperThread[T]
}

// keeperThread is the scratch memory of one thread.
type keeperThread[T ir.Float] struct {
	places func(by [][]T) []int // returns the kept elements of a row
	by     [][]T                // argument of places
	in     [][]T                // arguments of the op
}

// listedShare is the minimum ratio of the length of a row to the number of its listed elements. Visiting more of them is not faster than
// visiting the row.
const listedShare = 4

// keeper returns the keeper of v. The args in by determine which elements are kept.
func (c *compiler[T]) keeper(v *ir.Value, o ir.Blockwise, which *ir.Selection, by []*ir.Value) *keeper[T] {
	height := volume.Of(v.Shape) / o.Block
	most := which.Most
	if most == 0 {
		most = o.Block / listedShare
	}
	k := &keeper[T]{op: o, to: c.cells[v], n: o.Block}
	k.to.kept = &kernel.Kept{Most: most, Counts: make([]int32, height), Columns: make([]int32, height*most)}
	c.apart[v] = true
	for _, a := range by {
		k.by = append(k.by, c.cells[skipReshapes(a)])
	}
	if which.Like > 0 {
		k.like = c.keptOf(by[which.Like])
	}
	for range c.plan.team.Threads() {
		t := keeperThread[T]{by: make([][]T, len(by)), in: make([][]T, len(by)+1)}
		switch places := any(&t.places).(type) {
		case *func(by [][]float32) []int:
			*places = which.Float32(o.Block, most)
		case *func(by [][]float64) []int:
			*places = which.Float64(o.Block, most)
		}
		k.threads = append(k.threads, t)
	}
	return k
}

// keptOf returns the known elements of v, nil if there are none, or if v has other rows than the matrix whose elements are known.
func (c *compiler[T]) keptOf(v *ir.Value) *kernel.Kept {
	if from := skipReshapes(v); c.cells[from] != nil && slices.Equal(from.Shape, v.Shape) {
		return c.cells[from].kept
	}
	return nil
}

// places clears the elements of the last run in row i, and returns those of this run. ok is false if they are too many.
func (k *keeper[T]) places(thread, i int) (places []int32, ok bool) {
	kept, row := k.to.kept, k.to.data[i*k.n:(i+1)*k.n]
	last, ok := kept.Row(i)
	for _, j := range last {
		row[j] = 0
	}
	if !ok {
		clear(row)
	}
	into := kept.Columns[i*kept.Most:][:kept.Most]
	if k.like != nil {
		list, ok := k.like.Row(i)
		if kept.Counts[i] = int32(copy(into, list)); !ok {
			kept.Counts[i] = kernel.Unlisted
		}
		return kept.Row(i)
	}
	t := &k.threads[thread]
	for j, by := range k.by {
		t.by[j] = by.data[i*k.n : (i+1)*k.n]
	}
	list := t.places(t.by)
	if kept.Counts[i] = int32(len(list)); len(list) > kept.Most {
		kept.Counts[i] = kernel.Unlisted
		return nil, false
	}
	for q, j := range list {
		into[q] = int32(j)
	}
	return kept.Row(i)
}

// whole computes rows [from, to) with the op's own kernel. The last argument has the data of these rows, and may be the result.
func (k *keeper[T]) whole(thread, from, to int, last []T) {
	in := k.threads[thread].in
	for j, by := range k.by {
		in[j] = by.data[from*k.n : to*k.n]
	}
	in[len(in)-1] = last
	runBlocks(k.op, k.to.data[from*k.n:to*k.n], in)
}

// keep computes an op with a selection. Its units are rows.
type keep[T ir.Float] struct {
	*keeper[T]
	from *cell[T]
}

func (w *keep[T]) run(thread, from, to int) {
	for i := from; i < to; i++ {
		places, ok := w.places(thread, i)
		if !ok {
			w.whole(thread, i, i+1, w.from.data[i*w.n:(i+1)*w.n])
		}
		for _, j := range places {
			w.to.data[i*w.n+int(j)] = w.from.data[i*w.n+int(j)]
		}
	}
}

func (w *keep[T]) finish(int) {}

// keepStep returns the step of a matrix of which an op keeps a few elements, nil for another op.
func (c *compiler[T]) keepStep(v *ir.Value, o ir.Blockwise) *step {
	selecting, ok := o.Kernel.(ir.Selecting)
	if !ok || selecting.Selection() == nil || len(v.Shape) != 2 || v.Shape[1] != o.Block || selecting.Selection().Most*selectedShare > o.Block {
		return nil
	}
	which := selecting.Selection()
	last := len(v.Args) - 1
	st := &step{name: o.String(), units: v.Shape[0], serial: volume.Of(v.Shape) < serialBelow, writes: []operand{{v, rows}},
		flops: float64(volume.Of(v.Shape)), divisible: true}
	for _, a := range v.Args {
		st.reads = append(st.reads, operand{skipReshapes(a), rows})
	}
	st.work = &keep[T]{c.keeper(v, o, which, v.Args[:max(1, last)]), c.cells[skipReshapes(v.Args[last])]}
	return st
}

// keptSource returns the matrix with known elements on which all members of a group depend: each is 0 where the matrix is, or sums
// over rows, to which zeros add nothing. It returns nil if there is none.
func (b *chainBuilder[T]) keptSource() *ir.Value {
	var source *ir.Value
	for _, v := range b.group.members {
		last := skipReshapes(v.Args[len(v.Args)-1])
		switch o := v.Op.(type) {
		case ir.Pointwise:
			if !keepsZeros(o.F) {
				return nil
			}
		case ir.Reduction:
			if o.F != ir.Sum || !slices.Equal(o.Axes.List(), []int{0}) {
				return nil
			}
		}
		if b.fusion.groupOf[last] == b.group {
			continue
		}
		if cell := b.cells[last]; cell == nil || cell.kept == nil || source != nil && source != last || !slices.Equal(v.Args[len(v.Args)-1].Shape, last.Shape) {
			return nil
		}
		source = last
	}
	return source
}

// keepsZeros reports whether a function is 0 wherever its last arg is.
func keepsZeros(f ir.Function) bool {
	if p, ok := f.(ir.Primitive); ok {
		return p.Args() == 1 && p.Eval(0, 0) == 0
	}
	e, _ := f.(ir.Elementwise)
	keeping, ok := e.Blocks.(ir.ZeroKeeping)
	return ok && keeping.KeepsZeros()
}

// keep makes the chain visit only the elements of its kept source. What it stores must overwrite the source, so that the other
// elements are 0.
func (b *chainBuilder[T]) keep(source *ir.Value) {
	c := b.chain
	if source == nil || len(c.dims) != 2 || c.columns || len(c.scalars) > 0 {
		return
	}
	for _, v := range b.group.members {
		if _, ok := v.Op.(ir.Pointwise); ok && b.fusion.stored(v) {
			if c.overwrites[v] != source {
				return
			}
			b.cells[v].kept = b.cells[source].kept
		}
	}
	c.kept = b.cells[source].kept
}

// runKept computes the kept elements of rows [from, to).
func (c *chain[T]) runKept(thread, from, to int) {
	t := &c.threads[thread]
	var index [1]int
	for i := from; i < to; i++ {
		index[0] = i
		c.seek(t, index[:])
		places, ok := c.kept.Row(i)
		if !ok {
			c.row(thread, t, 0, c.dims[1])
		}
		for len(places) > 0 {
			n := min(len(places), tile)
			c.visit(thread, t, places[:n])
			places = places[n:]
		}
	}
}

// visit computes the elements at these places of the current row.
func (c *chain[T]) visit(thread int, t *chainThread[T], places []int32) {
	n := len(places)
	for r := range t.table {
		t.table[r] = t.memory[r*tile : r*tile+n]
	}
	for j := range c.vectors {
		row, values := c.vectors[j].cell.data[t.offsets[j]:], t.table[c.registers+j]
		for q, p := range places {
			values[q] = row[p]
		}
	}
	for j := range c.code {
		in := &c.code[j]
		in.do(t, n)
		if stored := in.dst - c.registers; stored >= 0 {
			row, values := c.vectors[stored].cell.data[t.offsets[stored]:], t.table[in.dst]
			for q, p := range places {
				row[p] = values[q]
			}
		}
	}
	for j := range c.sinks {
		into, values := c.sinks[j].vectors[thread][t.offsets[len(c.vectors)+j]:], t.table[c.sinks[j].source]
		for q, p := range places {
			into[p] += values[q]
		}
	}
}
