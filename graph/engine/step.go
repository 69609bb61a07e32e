package engine

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph"
)

// cell is the buffer of one value. Its data are set once memory is placed, and for inputs by every Bind.
type cell[T graph.Float] struct {
	data []T
	// panels says that a matrix is stored as one matrix per thread, its columns, one after the other.
	panels bool
}

// columns is where row 0 of a thread's columns [from, to) of an m x n matrix is, and the distance to the next row.
func (c *cell[T]) columns(m, n, from, to int) (at, stride int) {
	if c.panels {
		return from * m, to - from
	}
	return from, n
}

// work is how a step computes.
type work interface {
	// run computes units [from, to) as thread.
	run(thread, from, to int)
	// finish combines what the threads left, after all have run.
	finish(threads int)
}

// way says which part of a buffer unit i of a step touches.
type way uint8

const (
	whole   way = iota // any
	rows               // the i-th of as many equal parts as there are units
	columns            // column i of a matrix
)

// rowsIf is rows where that is so, else the whole.
func rowsIf(so bool) way {
	if so {
		return rows
	}
	return whole
}

// reading is a buffer that a step reads or writes.
type reading struct {
	value *value
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
	// columns says that units are columns rather than rows, for people.
	columns bool
	// over has of values that are written over others what those are.
	over map[*value]*value
	// divisible says that a few units at a time take no longer than all at once.
	divisible bool
	// prepare is called for a thread's units before the first of them run; nil for most.
	prepare func(thread, from, to int)
}

// begin prepares a thread's units [from, to).
func (s *step) begin(thread, from, to int) {
	if s.prepare != nil {
		s.prepare(thread, from, to)
	}
}

// serialBelow is how many elements make sharing worth a barrier.
const serialBelow = 2048

// multiply is a matrix product, batched where there are more than two axes. Its units are the rows of the result, or the
// columns of a single one: each thread packs its part of one operand and the whole of the other, so that what is split
// should be the longer side.
type multiply[T graph.Float] struct {
	kernels        *kernels[T]
	a, b, c        *cell[T]
	transA, transB bool
	m, n, k        int
	columns        bool
}

func (w *multiply[T]) run(_, from, to int) {
	if w.columns {
		w.multiplyColumns(from, to)
		return
	}
	if w.transA && w.a.panels {
		if from == to {
			return
		}
		w.kernels.set.Gemm(true, w.transB, to-from, w.n, w.k, 1, w.a.data[from*w.k:], to-from, w.b.data, w.ldb(), 0, w.c.data[from*w.n:], w.n)
		return
	}
	for from < to { // rows of consecutive matrices
		matrix, row := from/w.m, from%w.m
		rows := min(w.m-row, to-from)
		w.multiply(w.a.data[matrix*w.m*w.k:], w.b.data[matrix*w.k*w.n:], w.c.data[matrix*w.m*w.n:], row, row+rows)
		from += rows
	}
}

// multiply computes rows [top, bottom) of one product.
func (w *multiply[T]) multiply(a, b, c []T, top, bottom int) {
	if top == bottom || w.n == 0 {
		return
	}
	lda := w.k
	if w.transA {
		lda, a = w.m, a[top:]
	} else {
		a = a[top*w.k:]
	}
	w.kernels.set.Gemm(w.transA, w.transB, bottom-top, w.n, w.k, 1, a, lda, b, w.ldb(), 0, c[top*w.n:], w.n)
}

// multiplyColumns computes columns [left, right) of the only product.
func (w *multiply[T]) multiplyColumns(left, right int) {
	if left == right || w.m == 0 {
		return
	}
	lda := w.k
	if w.transA {
		lda = w.m
	}
	b, ldb := left*w.k, w.k
	if !w.transB {
		b, ldb = w.b.columns(w.k, w.n, left, right)
	}
	c, ldc := w.c.columns(w.m, w.n, left, right)
	w.kernels.set.Gemm(w.transA, w.transB, w.m, right-left, w.k, 1, w.a.data, lda, w.b.data[b:], ldb, 0, w.c.data[c:], ldc)
}

// ldb is the distance between the rows of B as stored.
func (w *multiply[T]) ldb() int {
	if w.transB {
		return w.k
	}
	return w.n
}

func (w *multiply[T]) finish(int) {}

// partial is one thread's part of a product: its units are the columns of A.
type partial[T graph.Float] struct {
	multiply[T]
	thread int
}

func (w *partial[T]) run(thread, from, to int) {
	if thread != w.thread {
		return
	}
	a, lda := w.a.columns(w.m, w.k, from, to)
	b := from
	if !w.transB {
		b *= w.n
	}
	w.kernels.set.Gemm(false, w.transB, w.m, w.n, to-from, 1, w.a.data[a:], lda, w.b.data[b:], w.ldb(), 0, w.c.data, w.n)
}

// permute is a transpose that moves its elements.
type permute[T graph.Float] struct {
	from, to *cell[T]
	shape    []int // of the result
	steps    []int // in the source, per axis of the result
}

func (w *permute[T]) run(_, from, to int) {
	per := size(w.shape) / max(w.shape[0], 1)
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

// blocks runs an op of ours that computes independent blocks of elements.
type blocks[T graph.Float] struct {
	op   blockwise
	args []*cell[T]
	to   *cell[T]
	in   [][][]T // per thread
}

func (w *blocks[T]) run(thread, from, to int) {
	b := w.op.block
	in := w.in[thread]
	for i, a := range w.args {
		in[i] = a.data[from*b : to*b]
	}
	switch dst := any(w.to.data[from*b : to*b]).(type) {
	case []float32:
		w.op.kernel.Float32(dst, any(in).([][]float32), b)
	case []float64:
		w.op.kernel.Float64(dst, any(in).([][]float64), b)
	}
}

func (w *blocks[T]) finish(int) {}

// foreignOp runs an op that the engine does not know through its own Do, on tensors that wrap the buffers. Values that
// are no numbers of the program's precision pass between such ops as they are.
type foreignOp[T graph.Float] struct {
	node    *gorgonia.Node
	args    []*value
	cells   map[*value]*cell[T]
	boxes   map[*value]*gorgonia.Value
	result  *value
	failure *failure
}

func (w *foreignOp[T]) run(int, int, int) {
	if w.failure.first != nil {
		return
	}
	if err := w.do(); err != nil {
		w.failure.set(fmt.Errorf("engine: %v: %w", w.node.Op(), err))
	}
}

func (w *foreignOp[T]) finish(int) {}

func (w *foreignOp[T]) do() error {
	var out gorgonia.Value
	if w.node.Op() == nil {
		out = w.node.Value()
	} else {
		in := make([]gorgonia.Value, len(w.args))
		for i, a := range w.args {
			v, err := w.wrap(a)
			if err != nil {
				return err
			}
			in[i] = v
		}
		var err error
		if out, err = w.node.Op().Do(in...); err != nil {
			return err
		}
	}
	if box := w.boxes[w.result]; box != nil {
		*box = out
		return nil
	}
	values, err := elements[T](out)
	if err != nil {
		return err
	}
	to := w.cells[w.result].data
	if len(values) != len(to) {
		return fmt.Errorf("returned %d values, its shape %v has %d", len(values), w.result.shape, len(to))
	}
	copy(to, values)
	return nil
}

// wrap returns a copy of a value in the form that ops take: some overwrite or transpose their inputs in place.
func (w *foreignOp[T]) wrap(a *value) (gorgonia.Value, error) {
	if box := w.boxes[skipReshapes(a)]; box != nil {
		return *box, nil
	}
	data := slices.Clone(w.cells[skipReshapes(a)].data)
	if len(a.shape) == 0 {
		return scalarValue(data[0]), nil
	}
	return tensor.New(tensor.WithShape(a.shape...), tensor.WithBacking(data)), nil
}

func scalarValue[T graph.Float](v T) gorgonia.Value {
	if _, ok := any(v).(float32); ok {
		return gorgonia.NewF32(float32(v))
	}
	return gorgonia.NewF64(float64(v))
}

// elements returns the numbers of a value in row-major order.
func elements[T graph.Float](v gorgonia.Value) ([]T, error) {
	if d, ok := v.(*tensor.Dense); ok && (d.RequiresIterator() || !d.DataOrder().IsRowMajor()) {
		v = d.Materialize()
	}
	switch d := v.Data().(type) {
	case []T:
		return d, nil
	case T:
		return []T{d}, nil
	}
	return nil, fmt.Errorf("returned %T, want %v", v.Data(), dtypeOf[T]())
}
