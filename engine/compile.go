package engine

import (
	"tessera/engine/ir"
	"tessera/internal/hugepages"
	"tessera/internal/volume"
)

// compiler turns a module into a plan.
type compiler[T ir.Float] struct {
	plan    *Plan[T]
	kernels *kernels[T]
	cells   map[*ir.Value]*cell[T]
	boxes   map[*ir.Value]*any // of opaque values that are not numbers of the program's precision
	fusion  *fusion
	over    map[*ir.Value]*ir.Value // what is written over what, see place
	scratch []*cell[T]              // one per thread, for whatever step it is at
	steps   []*step
	sent    []*message[T] // in their order
}

func (c *compiler[T]) compile() error {
	c.bindLeaves()
	c.fusion = fuse(c.plan.module)
	for _, v := range c.plan.module.values {
		c.give(v)
	}
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

// bindLeaves makes the cells of inputs and parameters.
func (c *compiler[T]) bindLeaves() {
	p := c.plan
	p.inputs = make([]*cell[T], len(p.program.Inputs))
	for i, in := range p.program.Inputs {
		p.inputs[i] = &cell[T]{data: make([]T, volume.Of(in.Shape))}
	}
	for _, b := range p.program.Parameters {
		p.parameters = append(p.parameters, parameterValues[T](b.Data))
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

// parameterValues returns data itself in float32, a converted copy otherwise.
func parameterValues[T ir.Float](data []float32) []T {
	if same, ok := any(data).([]T); ok {
		return same
	}
	converted := make([]T, len(data))
	for i, v := range data {
		converted[i] = T(v)
	}
	return converted
}

// give makes a cell or a box for a value that is stored in memory.
func (c *compiler[T]) give(v *ir.Value) {
	switch o := v.Op.(type) {
	case ir.Product, partialProduct, ir.Transpose, ir.Blockwise, ir.Unitwise, ir.Reduction, ir.AllReduce, ir.AllGather:
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

// makeSteps makes one step per group and one per value outside of groups, in topological order.
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

// placeAll gives every written value its place in the arena.
func (c *compiler[T]) placeAll() {
	p := c.plan
	p.blocks, p.arena = place(p.phases, p.module.wanted, c.over)
	arena := hugepages.Make[T](p.arena)
	for _, b := range p.blocks {
		if cell := c.cells[b.value]; cell != nil {
			cell.data = arena[b.offset : b.offset+b.len : b.offset+b.len]
		}
	}
	for _, v := range p.module.values { // in topological order: what lies below has its data
		if below := c.over[v]; below != nil {
			c.cells[v].data = c.cells[below].data
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
	for _, g := range p.program.Gradients {
		p.gradients[g.Parameter] = next()
	}
	for _, u := range p.program.Updates {
		p.updates = append(p.updates, next())
		p.moved = append(p.moved, p.parameters[u.Parameter])
	}
}
