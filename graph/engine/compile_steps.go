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
			writes: []reading{{v, true}}, flops: float64(size(v.shape))}
		for _, a := range v.args {
			st.reads = append(st.reads, reading{skipReshapes(a), true})
		}
		c.steps = append(c.steps, st)
	case unitwise:
		c.steps = append(c.steps, c.unitStep(v, o))
	case opaque:
		w := &foreignOp[T]{node: o.node, args: v.args, cells: c.cells, boxes: c.boxes, result: v, failure: &c.plan.failure}
		st := &step{name: o.String(), work: w, units: 1, serial: true, writes: []reading{{v, false}}}
		for _, a := range v.args {
			st.reads = append(st.reads, reading{skipReshapes(a), false})
		}
		c.steps = append(c.steps, st)
	}
	return nil
}

// packedTwice is how many elements of B two threads should not both pack.
const packedTwice = 1 << 20

func (c *compiler[T]) productStep(v *value, o product) *step {
	a, b := v.args[0], v.args[1]
	n := len(v.shape)
	k := a.shape[n-1]
	if o.transA {
		k = a.shape[n-2]
	}
	w := &multiply[T]{kernels: c.kernels, a: c.cells[skipReshapes(a)], b: c.cells[skipReshapes(b)], c: c.cells[v],
		transA: o.transA, transB: o.transB, m: v.shape[n-2], n: v.shape[n-1], k: k}
	// A product that reads A by rows stays in the phase that makes A's rows, unless packing all of B twice costs more.
	w.columns = n == 2 && w.n > w.m && (o.transA || k*w.n >= packedTwice)
	units := size(v.shape) / max(w.n, 1)
	if w.columns {
		units = w.n
	}
	flops := 2 * float64(size(v.shape)) * float64(k)
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, w.m, w.k, w.n), work: w, units: units, serial: flops < 16*serialBelow,
		reads:  []reading{{skipReshapes(a), !o.transA && !w.columns}, {skipReshapes(b), false}},
		writes: []reading{{v, !w.columns}}, flops: flops}
}

func (c *compiler[T]) transposeStep(v *value, o transpose) *step {
	from := contiguous(v.args[0].shape)
	w := &permute[T]{from: c.cells[skipReshapes(v.args[0])], to: c.cells[v], shape: v.shape}
	for _, a := range axesOf(o.axes) {
		w.steps = append(w.steps, from[a].step)
	}
	return &step{name: o.String(), work: w, units: v.shape[0], serial: size(v.shape) < serialBelow,
		reads: []reading{{skipReshapes(v.args[0]), false}}, writes: []reading{{v, true}}}
}

// chainStep describes what a chain reads and writes.
func chainStep[T graph.Float](ch *chain[T], g *group) *step {
	st := &step{name: chainName(g), work: ch, units: ch.units, serial: g.size < serialBelow, flops: float64(g.size * len(g.members))}
	for _, s := range slices.Concat(ch.vectors, ch.scalars) {
		r := reading{s.value, s.axes[0].step != 0 && s.axes[0].step*s.axes[0].length == size(s.value.shape)}
		if slices.Contains(g.members, s.value) {
			st.writes = append(st.writes, r)
		} else {
			st.reads = append(st.reads, r)
		}
	}
	for _, s := range ch.sinks {
		st.writes = append(st.writes, reading{s.value, !s.across})
	}
	return st
}
