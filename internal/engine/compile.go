package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/hugepages"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// compiler turns a module into a plan.
type compiler[T ir.Float] struct {
	plan       *Plan[T]
	kernels    *kernels[T]
	cells      map[*ir.Value]*cell[T]
	boxes      map[*ir.Value]*any // opaque values: those that are not tensors in the program's precision
	fusion     *fusion
	overwrites map[*ir.Value]*ir.Value // maps a value to the value whose memory it overwrites; see place
	scratch    []*cell[T]              // one per thread, shared by all steps
	mostlyZero map[*ir.Value]bool      // values that products check for zeros
	steps      []*step
	scattered  map[*ir.Value]*scatter[T]
	apart      map[*ir.Value]bool // values with memory of their own
	sent       []*message[T]      // messages that complete at the end of the run, in the order of sending
}

func (c *compiler[T]) compile() error {
	c.bindLeaves()
	c.fusion = fuse(c.plan.module)
	for _, v := range c.plan.module.values {
		c.makeCell(v)
	}
	c.findZeros()
	if err := c.makeSteps(); err != nil {
		return err
	}
	c.keepOrder()
	c.plan.phases = schedule(c.steps)
	c.makePanels()
	c.placeAll()
	c.bindWanted()
	c.bindMessages()
	c.makeJob()
	return nil
}

// bindLeaves creates the cells of inputs and parameters.
func (c *compiler[T]) bindLeaves() {
	p := c.plan
	p.inputs = make([]*cell[T], len(p.program.Inputs))
	for i, in := range p.program.Inputs {
		p.inputs[i] = &cell[T]{data: make([]T, volume.Of(in.Shape))}
	}
	for _, b := range p.program.Parameters {
		p.parameters = append(p.parameters, ir.ParameterValues[T](b.Data))
	}
	for _, v := range p.module.values {
		if l, ok := v.Op.(ir.Leaf); ok {
			if l.Kind == ir.InputLeaf {
				c.cells[v] = p.inputs[l.Index]
			} else {
				c.cells[v] = &cell[T]{data: p.parameters[l.Index]}
			}
		}
	}
}

// makeCell creates a cell, or a box for an opaque value, if v is stored in memory.
func (c *compiler[T]) makeCell(v *ir.Value) {
	switch o := v.Op.(type) {
	case ir.Product, partialProduct, selectedProduct, ir.Transpose, ir.Blockwise, ir.Unitwise, ir.Reduction, ir.AllReduce, ir.AllGather:
		c.cells[v] = &cell[T]{}
	case ir.Pointwise:
		if c.fusion.stored(v) {
			c.cells[v] = &cell[T]{}
		}
	case ir.Foreign:
		if o.Boxed {
			c.boxes[v] = new(any)
		} else {
			c.cells[v] = &cell[T]{}
		}
	}
}

// makeSteps creates a step for each group and for each value outside groups, in topological order.
func (c *compiler[T]) makeSteps() error {
	done := map[any]bool{}
	var visit func(v *ir.Value) error
	visit = func(v *ir.Value) error {
		g := c.fusion.groupOf[v]
		var key any = v
		members := []*ir.Value{v}
		if g != nil {
			key, members = g, g.members
		} else if message, ok := ir.MessageOf(v.Op); ok {
			key, members = message, c.fusion.messages[message]
		}
		if done[key] {
			return nil
		}
		done[key] = true
		for _, member := range members {
			for _, a := range member.Args {
				if err := visit(a); err != nil {
					return err
				}
			}
		}
		return c.makeStep(v, g)
	}
	for _, v := range c.plan.module.values {
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}

// placeAll allocates the arena and assigns a part of it to every written value.
func (c *compiler[T]) placeAll() {
	p := c.plan
	p.blocks, p.arena = place(p.phases, p.module.wanted, c.overwrites, c.apart)
	for v := range c.apart { // its zeros stay from run to run
		c.cells[v].data = hugepages.Make[T](volume.Of(v.Shape))
	}
	arena := hugepages.Make[T](p.arena)
	for _, b := range p.blocks {
		if cell := c.cells[b.value]; cell != nil {
			cell.data = arena[b.offset : b.offset+b.len : b.offset+b.len]
		}
	}
	for _, v := range p.module.values { // in topological order, so that the overwritten value already has its data
		if overwritten := c.overwrites[v]; overwritten != nil {
			c.cells[v].data = c.cells[overwritten].data
		}
	}
}

// bindWanted records where the wanted values are stored, in the order of ir.Module.Wanted.
func (c *compiler[T]) bindWanted() {
	p := c.plan
	wanted := p.module.wanted
	next := func() *cell[T] {
		w := c.cells[skipReshapes(wanted[0])]
		wanted = wanted[1:]
		return w
	}
	for range p.program.Taps {
		p.taps = append(p.taps, next())
	}
	p.gradients = make([]*cell[T], len(p.program.Parameters))
	p.touched = make([]*scatter[T], len(p.program.Parameters))
	for _, g := range p.program.Gradients {
		p.touched[g.Parameter] = c.scattered[wanted[0]]
		p.gradients[g.Parameter] = next()
	}
	for _, u := range p.program.Updates {
		p.updates = append(p.updates, next())
		p.updated = append(p.updated, p.parameters[u.Parameter])
	}
}

func (c *compiler[T]) makeStep(v *ir.Value, g *group) error {
	if g != nil {
		chain, err := compileChain(c.fusion, g, c.kernels, c.cells, c.plan.team.Threads())
		if err != nil {
			return err
		}
		c.steps = append(c.steps, chainStep(chain, g))
		maps.Copy(c.overwrites, chain.overwrites)
		return nil
	}
	switch o := v.Op.(type) {
	case ir.Product:
		c.steps = append(c.steps, c.productStep(v, o))
	case partialProduct:
		c.steps = append(c.steps, c.partialStep(v, o))
	case selectedProduct:
		c.steps = append(c.steps, c.selectedStep(v, o))
	case ir.Transpose:
		c.steps = append(c.steps, c.transposeStep(v, o))
	case ir.Blockwise:
		c.steps = append(c.steps, c.blockStep(v, o))
	case ir.Unitwise:
		if width := c.scatters(v, o); width > 0 {
			c.steps = append(c.steps, c.scatterStep(v, width))
			break
		}
		c.steps = append(c.steps, c.unitStep(v, o))
	case ir.Foreign:
		c.steps = append(c.steps, c.foreignStep(v, o))
	case ir.AllReduce:
		c.steps = append(c.steps, c.messageStep(c.fusion.messages[o.Message]))
	case ir.AllGather:
		c.steps = append(c.steps, c.messageStep(c.fusion.messages[o.Message]))
	}
	return nil
}

// blockStep returns the step for an op that is computed in blocks.
func (c *compiler[T]) blockStep(v *ir.Value, o ir.Blockwise) *step {
	if st := c.keepStep(v, o); st != nil {
		return st
	}
	w := &blocks[T]{op: o, to: c.cells[v]}
	st := &step{name: o.String(), work: w, units: volume.Of(v.Shape) / o.Block, serial: volume.Of(v.Shape) < serialBelow,
		writes: []operand{{v, rows}}, flops: float64(volume.Of(v.Shape)), divisible: true}
	for _, a := range v.Args {
		w.args = append(w.args, c.cells[skipReshapes(a)])
		st.reads = append(st.reads, operand{skipReshapes(a), rows})
	}
	for range c.plan.team.Threads() {
		w.in = append(w.in, make([][]T, len(v.Args)))
	}
	return st
}

func (c *compiler[T]) foreignStep(v *ir.Value, o ir.Foreign) *step {
	w := &foreignOp[T]{op: o.Run, args: v.Args, cells: c.cells, boxes: c.boxes, result: v, failure: &c.plan.failure}
	st := &step{name: o.String(), work: w, units: 1, serial: true, writes: []operand{{v, whole}}}
	for _, a := range v.Args {
		st.reads = append(st.reads, operand{skipReshapes(a), whole})
	}
	return st
}

func (c *compiler[T]) productStep(v *ir.Value, o ir.Product) *step {
	w := c.multiply(v, o)
	w.columns = c.plan.module.byColumns(v, c.plan.team.Threads())
	units, a, b, result := volume.Of(v.Shape)/max(w.n, 1), whole, whole, rows
	switch {
	case w.columns && o.TransB:
		units, b, result = w.n, rows, columns
	case w.columns:
		units, b, result = w.n, columns, columns
	case o.TransA && len(v.Shape) == 2:
		a = columns
	case !o.TransA:
		a = rows
	}
	flops := 2 * float64(volume.Of(v.Shape)) * float64(w.k)
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: &w, units: units, serial: flops < 16*serialBelow,
		reads:  []operand{{skipReshapes(v.Args[0]), a}, {skipReshapes(v.Args[1]), b}},
		writes: []operand{{v, result}}, flops: flops, columns: w.columns}
}

// partialStep returns the step for a product that sums over one thread's columns of A. The other threads are idle in
// this step.
func (c *compiler[T]) partialStep(v *ir.Value, o partialProduct) *step {
	w := &partial[T]{c.multiply(v, o.Product), o.thread}
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: w, units: w.k,
		reads:  []operand{{skipReshapes(v.Args[0]), columns}, {skipReshapes(v.Args[1]), whole}},
		writes: []operand{{v, whole}}, flops: 2 * float64(volume.Of(v.Shape)*w.k) / float64(c.plan.team.Threads()), columns: true}
}

func (c *compiler[T]) multiply(v *ir.Value, o ir.Product) multiply[T] {
	a, b := v.Args[0], v.Args[1]
	n := len(v.Shape)
	k := a.Shape[n-1]
	if o.TransA {
		k = a.Shape[n-2]
	}
	w := multiply[T]{kernels: c.kernels, a: c.cells[skipReshapes(a)], b: c.cells[skipReshapes(b)], c: c.cells[v],
		transA: o.TransA, transB: o.TransB, m: v.Shape[n-2], n: v.Shape[n-1], k: k, zeros: c.zerosIn(a, b)}
	if n == 2 && w.zeros != kernel.NoZeros {
		w.kept = c.keptOf(map[kernel.Zeros]*ir.Value{kernel.ZerosInA: a, kernel.ZerosInB: b}[w.zeros])
	}
	return w
}

// zerosIn returns which operand of a product is probably almost all zeros. The result is a hint: the product checks the
// values in every run.
func (c *compiler[T]) zerosIn(a, b *ir.Value) kernel.Zeros {
	switch {
	case c.mostlyZero[a]:
		return kernel.ZerosInA
	case c.mostlyZero[b]:
		return kernel.ZerosInB
	}
	return kernel.NoZeros
}

// findZeros marks kernel results that are almost all zeros, and values computed from them element by element.
func (c *compiler[T]) findZeros() {
	for _, v := range c.plan.module.values {
		switch o := v.Op.(type) {
		case ir.Blockwise:
			sparse, ok := o.Kernel.(ir.Sparse)
			c.mostlyZero[v] = ok && sparse.MostlyZero()
		case selectedProduct:
			c.mostlyZero[v] = true
		case ir.Pointwise, ir.Reshape, ir.Transpose:
			c.mostlyZero[v] = slices.ContainsFunc(v.Args, func(a *ir.Value) bool { return c.mostlyZero[a] })
		}
	}
}

func (c *compiler[T]) transposeStep(v *ir.Value, o ir.Transpose) *step {
	from := contiguous(v.Args[0].Shape)
	w := &permute[T]{from: c.cells[skipReshapes(v.Args[0])], to: c.cells[v], shape: v.Shape}
	for _, a := range o.Axes.List() {
		w.steps = append(w.steps, from[a].step)
	}
	return &step{name: o.String(), work: w, units: v.Shape[0], serial: volume.Of(v.Shape) < serialBelow,
		reads: []operand{{skipReshapes(v.Args[0]), whole}}, writes: []operand{{v, rows}}}
}

// chainStep returns the step for a chain, with the buffers that the chain reads and writes.
func chainStep[T ir.Float](ch *chain[T], g *group) *step {
	st := &step{name: chainName(g), work: ch, units: ch.units, serial: g.size < serialBelow, flops: float64(g.size * len(g.members)), columns: ch.columns,
		divisible: true, prepare: ch.reset, overwrites: ch.overwrites}
	for _, s := range slices.Concat(ch.vectors, ch.scalars) {
		r := operand{s.value, s.way(ch.columns)}
		if slices.Contains(g.members, s.value) {
			st.writes = append(st.writes, r)
		} else {
			st.reads = append(st.reads, r)
		}
	}
	for _, s := range ch.sinks {
		st.writes = append(st.writes, operand{s.value, rowsIf(!s.across)})
	}
	return st
}

// way returns the part of the slot's buffer that one unit of the chain accesses.
func (s *slot[T]) way(inColumns bool) way {
	first, last := s.axes[0], s.axes[len(s.axes)-1]
	switch all := first.step*first.length == volume.Of(s.value.Shape); {
	case inColumns && all && first.step == last.length && last.step == 1:
		return columns
	case !inColumns && all && first.step != 0:
		return rows
	}
	return whole
}

// makePanels stores a matrix thread by thread if every step that accesses it shares its columns. The columns of one
// thread form a panel, whose rows are contiguous. Without panels, the processor would prefetch memory past the end of a
// thread's part of a row, which another thread is about to write.
func (c *compiler[T]) makePanels() {
	units := map[*ir.Value]int{} // number of units of the steps that access a value by columns; -1 if a step accesses it otherwise
	for _, st := range c.steps {
		for _, r := range slices.Concat(st.reads, st.writes) {
			if u, known := units[r.value]; r.way != columns || st.serial || known && u != st.units {
				units[r.value] = -1
			} else {
				units[r.value] = st.units
			}
		}
	}
	for _, w := range c.plan.module.wanted {
		units[skipReshapes(w)] = -1
	}
	for _, v := range slices.Backward(c.plan.module.values) { // backwards, so that an overwriting value is visited before the value that it overwrites
		if _, isLeaf := v.Op.(ir.Leaf); isLeaf || units[v] <= 0 || len(v.Shape) != 2 || v.Shape[1] != units[v] {
			units[v] = -1
		}
		if overwritten := c.overwrites[v]; overwritten != nil && units[overwritten] != units[v] {
			units[overwritten] = -1
		}
	}
	for _, v := range c.plan.module.values {
		if cell := c.cells[v]; cell != nil {
			overwritten := c.overwrites[v]
			cell.panels = units[v] > 0 && (overwritten == nil || units[overwritten] > 0)
		}
	}
}

// block is the range of one value in the arena, in elements.
type block struct {
	value       *ir.Value
	first, last int // phases in which the value is alive
	offset, len int
}

// align is the alignment of blocks in elements: a multiple of the cache line in both precisions.
const align = 16

// place assigns a range of one arena to every written value. The ranges of values that are alive at the same time do
// not overlap. Wanted values stay alive to the end. The largest values are placed first, each at the lowest free
// offset. overwrites maps a value to the value that it overwrites element by element; the two share a range. Values in apart have
// memory of their own.
func place(phases []phase, wanted []*ir.Value, overwrites map[*ir.Value]*ir.Value, apart map[*ir.Value]bool) (blocks []block, total int) {
	live := map[*ir.Value]*block{}
	for i, p := range phases {
		for _, st := range slices.Concat(p.serial, p.shared) {
			for _, w := range st.writes {
				if overwritten := overwrites[w.value]; overwritten != nil {
					live[w.value] = live[overwritten]
					live[w.value].last = i
				}
				if live[w.value] == nil {
					live[w.value] = &block{value: w.value, first: i, last: i, len: volume.Of(w.value.Shape)}
				}
			}
			for _, r := range st.reads {
				if b := live[r.value]; b != nil {
					b.last = i
				}
			}
		}
	}
	for _, w := range wanted {
		if b := live[skipReshapes(w)]; b != nil {
			b.last = len(phases)
		}
	}
	for v, b := range live {
		if overwrites[v] == nil && !apart[v] {
			blocks = append(blocks, *b)
		}
	}
	slices.SortFunc(blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(b.len, a.len), cmp.Compare(a.value.ID, b.value.ID))
	})
	for i := range blocks {
		blocks[i].offset = lowest(&blocks[i], blocks[:i])
		total = max(total, blocks[i].offset+blocks[i].len)
	}
	return blocks, total
}

// lowest returns the smallest offset at which b overlaps no placed block that is alive at the same time.
func lowest(b *block, placed []block) int {
	busy := lists.Only(placed, func(p block) bool { return p.first <= b.last && b.first <= p.last })
	slices.SortFunc(busy, func(x, y block) int { return cmp.Compare(x.offset, y.offset) })
	at := 0
	for _, p := range busy {
		if at+b.len <= p.offset {
			break
		}
		at = max(at, (p.offset+p.len+align-1)/align*align)
	}
	return at
}
