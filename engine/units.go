package engine

import "tessera/engine/ir"

// units runs an op of package ops that computes its output in units.
type units[T ir.Float] struct {
	op      ir.Units
	args    []*cell[T]
	to      *cell[T]
	in      [][][]T    // per thread
	scratch []*cell[T] // per thread
}

func (w *units[T]) run(thread, from, to int) {
	if from == to {
		return
	}
	in := w.in[thread]
	for i, a := range w.args {
		in[i] = a.data
	}
	switch dst := any(w.to.data).(type) {
	case []float32:
		w.op.Float32(dst, any(in).([][]float32), any(w.scratch[thread].data).([]float32), from, to)
	case []float64:
		w.op.Float64(dst, any(in).([][]float64), any(w.scratch[thread].data).([]float64), from, to)
	}
}

func (w *units[T]) finish(int) {}

// newScratch returns an empty cell for every thread.
func newScratch[T ir.Float](threads int) []*cell[T] {
	cells := make([]*cell[T], threads)
	for i := range cells {
		cells[i] = &cell[T]{}
	}
	return cells
}

// unitStep is the step of an op in units. Its scratch is shared with every other such step.
func (c *compiler[T]) unitStep(v *ir.Value, o ir.Unitwise) *step {
	w := &units[T]{op: o.Kernel, to: c.cells[v], scratch: c.scratch}
	st := &step{name: o.String(), work: w, units: o.Kernel.Units(), serial: o.Kernel.Work() < serialBelow,
		writes: []reading{{v, rows}}, flops: o.Kernel.Work(), divisible: true}
	for i, a := range v.Args {
		w.args = append(w.args, c.cells[skipReshapes(a)])
		st.reads = append(st.reads, reading{skipReshapes(a), rowsIf(o.Kernel.ByUnit(i))})
	}
	for _, s := range c.scratch {
		w.in = append(w.in, make([][]T, len(v.Args)))
		if n := o.Kernel.Scratch(); n > len(s.data) {
			s.data = make([]T, n)
		}
	}
	return st
}
