package engine

import (
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// cell is the buffer of one value. Its data are set when memory is placed, and for inputs by every Bind.
type cell[T ir.Float] struct {
	data []T
	// panels is set if a matrix is stored as one matrix per thread: the columns of each thread, one thread after the other.
	panels bool
}

// columns is where row 0 of a thread's columns [from, to) of an m x n matrix is, and the distance to the next row.
func (c *cell[T]) columns(m, n, from, to int) (at, stride int) {
	if c.panels {
		return from * m, to - from
	}
	return from, n
}

// work is the computation of a step.
type work interface {
	// run computes units [from, to) as thread.
	run(thread, from, to int)
	// finish combines the results of the threads after all have run.
	finish(threads int)
}

// way is the part of a buffer that unit i of a step touches.
type way uint8

const (
	whole   way = iota // any
	rows               // the i-th of as many equal parts as there are units
	columns            // column i of a matrix
)

// rowsIf is rows if the condition holds, otherwise the whole.
func rowsIf(so bool) way {
	if so {
		return rows
	}
	return whole
}

// reading is a buffer that a step reads or writes.
type reading struct {
	value *ir.Value
	way   way
}

// step is one element of a plan: work that threads share by units.
type step struct {
	name   string
	work   work
	units  int
	serial bool // too little to share, or not safe to
	reads  []reading
	writes []reading
	flops  float64
	// columns is set if units are columns rather than rows.
	columns bool
	// over maps values to the values that they overwrite.
	over map[*ir.Value]*ir.Value
	// divisible is set if a few units at a time take no longer than all at once.
	divisible bool
	// after is a step that must come first although this one reads nothing of it: messages have one order on all processes.
	after *step
	// prepare is called for a thread's units before the first of them run; nil for most.
	prepare func(thread, from, to int)
}

// begin prepares a thread's units [from, to).
func (s *step) begin(thread, from, to int) {
	if s.prepare != nil {
		s.prepare(thread, from, to)
	}
}

// serialBelow is the number of elements from which sharing is worth a barrier.
const serialBelow = 2048

// permute is a transpose that moves its elements.
type permute[T ir.Float] struct {
	from, to *cell[T]
	shape    []int // of the result
	steps    []int // in the source, per axis of the result
}

func (w *permute[T]) run(_, from, to int) {
	per := volume.Of(w.shape) / max(w.shape[0], 1)
	index := make([]int, len(w.shape))
	for u := from; u < to; u++ {
		clear(index)
		index[0] = u
		for i := range per {
			off := 0
			for j, x := range index {
				off += x * w.steps[j]
			}
			w.to.data[u*per+i] = w.from.data[off]
			for j := len(index) - 1; j > 0; j-- {
				if index[j]++; index[j] < w.shape[j] {
					break
				}
				index[j] = 0
			}
		}
	}
}

func (w *permute[T]) finish(int) {}

// blocks runs an op of package ops that computes independent blocks of elements.
type blocks[T ir.Float] struct {
	op   ir.Blockwise
	args []*cell[T]
	to   *cell[T]
	in   [][][]T // per thread
}

func (w *blocks[T]) run(thread, from, to int) {
	b := w.op.Block
	in := w.in[thread]
	for i, a := range w.args {
		in[i] = a.data[from*b : to*b]
	}
	switch dst := any(w.to.data[from*b : to*b]).(type) {
	case []float32:
		w.op.Kernel.Float32(dst, any(in).([][]float32), b)
	case []float64:
		w.op.Kernel.Float64(dst, any(in).([][]float64), b)
	}
}

func (w *blocks[T]) finish(int) {}
