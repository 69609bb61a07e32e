package engine

import (
	"fmt"
	"maps"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

func (c *compiler[T]) makeStep(v *ir.Value, g *group) error {
	if g != nil {
		chain, err := compileChain(c.fusion, g, c.kernels, c.cells, c.plan.team.Threads())
		if err != nil {
			return err
		}
		c.steps = append(c.steps, chainStep(chain, g))
		maps.Copy(c.over, chain.over)
		return nil
	}
	switch o := v.Op.(type) {
	case ir.Product:
		c.steps = append(c.steps, c.productStep(v, o))
	case partialProduct:
		c.steps = append(c.steps, c.partialStep(v, o))
	case ir.Transpose:
		c.steps = append(c.steps, c.transposeStep(v, o))
	case ir.Blockwise:
		c.steps = append(c.steps, c.blockStep(v, o))
	case ir.Unitwise:
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

// blockStep is the step of an op in blocks.
func (c *compiler[T]) blockStep(v *ir.Value, o ir.Blockwise) *step {
	w := &blocks[T]{op: o, to: c.cells[v]}
	st := &step{name: o.String(), work: w, units: volume.Of(v.Shape) / o.Block, serial: volume.Of(v.Shape) < serialBelow,
		writes: []reading{{v, rows}}, flops: float64(volume.Of(v.Shape)), divisible: true}
	for _, a := range v.Args {
		w.args = append(w.args, c.cells[skipReshapes(a)])
		st.reads = append(st.reads, reading{skipReshapes(a), rows})
	}
	for range c.plan.team.Threads() {
		w.in = append(w.in, make([][]T, len(v.Args)))
	}
	return st
}

// foreignStep is the step of an op that runs by its own implementation.
func (c *compiler[T]) foreignStep(v *ir.Value, o ir.Foreign) *step {
	w := &foreignOp[T]{op: o.Run, args: v.Args, cells: c.cells, boxes: c.boxes, result: v, failure: &c.plan.failure}
	st := &step{name: o.String(), work: w, units: 1, serial: true, writes: []reading{{v, whole}}}
	for _, a := range v.Args {
		st.reads = append(st.reads, reading{skipReshapes(a), whole})
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
		reads:  []reading{{skipReshapes(v.Args[0]), a}, {skipReshapes(v.Args[1]), b}},
		writes: []reading{{v, result}}, flops: flops, columns: w.columns}
}

// partialStep is the sum over one thread's columns of A: the others compute theirs.
func (c *compiler[T]) partialStep(v *ir.Value, o partialProduct) *step {
	w := &partial[T]{c.multiply(v, o.Product), o.thread}
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: w, units: w.k,
		reads:  []reading{{skipReshapes(v.Args[0]), columns}, {skipReshapes(v.Args[1]), whole}},
		writes: []reading{{v, whole}}, flops: 2 * float64(volume.Of(v.Shape)*w.k) / float64(c.plan.team.Threads()), columns: true}
}

func (c *compiler[T]) multiply(v *ir.Value, o ir.Product) multiply[T] {
	a, b := v.Args[0], v.Args[1]
	n := len(v.Shape)
	k := a.Shape[n-1]
	if o.TransA {
		k = a.Shape[n-2]
	}
	return multiply[T]{kernels: c.kernels, a: c.cells[skipReshapes(a)], b: c.cells[skipReshapes(b)], c: c.cells[v],
		transA: o.TransA, transB: o.TransB, m: v.Shape[n-2], n: v.Shape[n-1], k: k}
}

func (c *compiler[T]) transposeStep(v *ir.Value, o ir.Transpose) *step {
	from := contiguous(v.Args[0].Shape)
	w := &permute[T]{from: c.cells[skipReshapes(v.Args[0])], to: c.cells[v], shape: v.Shape}
	for _, a := range o.Axes.List() {
		w.steps = append(w.steps, from[a].step)
	}
	return &step{name: o.String(), work: w, units: v.Shape[0], serial: volume.Of(v.Shape) < serialBelow,
		reads: []reading{{skipReshapes(v.Args[0]), whole}}, writes: []reading{{v, rows}}}
}

// chainStep describes the buffers that a chain reads and writes.
func chainStep[T ir.Float](ch *chain[T], g *group) *step {
	st := &step{name: chainName(g), work: ch, units: ch.units, serial: g.size < serialBelow, flops: float64(g.size * len(g.members)), columns: ch.columns,
		divisible: true, prepare: ch.reset, over: ch.over}
	for _, s := range slices.Concat(ch.vectors, ch.scalars) {
		r := reading{s.value, s.way(ch.columns)}
		if slices.Contains(g.members, s.value) {
			st.writes = append(st.writes, r)
		} else {
			st.reads = append(st.reads, r)
		}
	}
	for _, s := range ch.sinks {
		st.writes = append(st.writes, reading{s.value, rowsIf(!s.across)})
	}
	return st
}

// way is the part of a walk's buffer that a unit of its chain touches.
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
