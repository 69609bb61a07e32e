package engine

import (
	"fmt"
	"maps"
	"slices"

	"tessera/graph"
)

func (c *compiler[T]) makeStep(v *value, g *group) error {
	threads := c.plan.team.Threads()
	if g != nil {
		chain, err := compileChain(c.fusion, g, c.kernels, c.cells, threads)
		if err != nil {
			return err
		}
		c.steps = append(c.steps, chainStep(chain, g))
		maps.Copy(c.over, chain.over)
		return nil
	}
	switch o := v.op.(type) {
	case product:
		c.steps = append(c.steps, c.productStep(v, o))
	case part:
		c.steps = append(c.steps, c.partStep(v, o))
	case transpose:
		c.steps = append(c.steps, c.transposeStep(v, o))
	case blockwise:
		w := &blocks[T]{op: o, to: c.cells[v]}
		for _, a := range v.args {
			w.args = append(w.args, c.cells[skipReshapes(a)])
		}
		for range threads {
			w.in = append(w.in, make([][]T, len(v.args)))
		}
		st := &step{name: o.String(), work: w, units: size(v.shape) / o.block, serial: size(v.shape) < serialBelow,
			writes: []reading{{v, rows}}, flops: float64(size(v.shape)), divisible: true}
		for _, a := range v.args {
			st.reads = append(st.reads, reading{skipReshapes(a), rows})
		}
		c.steps = append(c.steps, st)
	case unitwise:
		c.steps = append(c.steps, c.unitStep(v, o))
	case opaque:
		w := &foreignOp[T]{node: o.node, args: v.args, cells: c.cells, boxes: c.boxes, result: v, failure: &c.plan.failure}
		st := &step{name: o.String(), work: w, units: 1, serial: true, writes: []reading{{v, whole}}}
		for _, a := range v.args {
			st.reads = append(st.reads, reading{skipReshapes(a), whole})
		}
		c.steps = append(c.steps, st)
	}
	return nil
}

func (c *compiler[T]) productStep(v *value, o product) *step {
	w := c.multiply(v, o)
	w.columns = c.plan.module.byColumns(v, c.plan.team.Threads())
	units, a, b, result := size(v.shape)/max(w.n, 1), whole, whole, rows
	switch {
	case w.columns && o.transB:
		units, b, result = w.n, rows, columns
	case w.columns:
		units, b, result = w.n, columns, columns
	case o.transA && len(v.shape) == 2:
		a = columns
	case !o.transA:
		a = rows
	}
	flops := 2 * float64(size(v.shape)) * float64(w.k)
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: &w, units: units, serial: flops < 16*serialBelow,
		reads:  []reading{{skipReshapes(v.args[0]), a}, {skipReshapes(v.args[1]), b}},
		writes: []reading{{v, result}}, flops: flops, columns: w.columns}
}

// partStep is a thread's part of a product: the others have nothing to do in it, but parts of their own.
func (c *compiler[T]) partStep(v *value, o part) *step {
	w := &partial[T]{c.multiply(v, o.product), o.thread}
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: w, units: w.k,
		reads:  []reading{{skipReshapes(v.args[0]), columns}, {skipReshapes(v.args[1]), whole}},
		writes: []reading{{v, whole}}, flops: 2 * float64(size(v.shape)*w.k) / float64(c.plan.team.Threads()), columns: true}
}

func (c *compiler[T]) multiply(v *value, o product) multiply[T] {
	a, b := v.args[0], v.args[1]
	n := len(v.shape)
	k := a.shape[n-1]
	if o.transA {
		k = a.shape[n-2]
	}
	return multiply[T]{kernels: c.kernels, a: c.cells[skipReshapes(a)], b: c.cells[skipReshapes(b)], c: c.cells[v],
		transA: o.transA, transB: o.transB, m: v.shape[n-2], n: v.shape[n-1], k: k}
}

func (c *compiler[T]) transposeStep(v *value, o transpose) *step {
	from := contiguous(v.args[0].shape)
	w := &permute[T]{from: c.cells[skipReshapes(v.args[0])], to: c.cells[v], shape: v.shape}
	for _, a := range axesOf(o.axes) {
		w.steps = append(w.steps, from[a].step)
	}
	return &step{name: o.String(), work: w, units: v.shape[0], serial: size(v.shape) < serialBelow,
		reads: []reading{{skipReshapes(v.args[0]), whole}}, writes: []reading{{v, rows}}}
}

// chainStep describes what a chain reads and writes.
func chainStep[T graph.Float](ch *chain[T], g *group) *step {
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

// way says which part of a walk's buffer a unit of its chain touches.
func (s *slot[T]) way(inColumns bool) way {
	first, last := s.axes[0], s.axes[len(s.axes)-1]
	switch all := first.step*first.length == size(s.value.shape); {
	case inColumns && all && first.step == last.length && last.step == 1:
		return columns
	case !inColumns && all && first.step != 0:
		return rows
	}
	return whole
}
