package engine

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// cell is the buffer of one value. Its data are set when the plan is compiled. The data of an input are set by every
// Bind.
type cell[T ir.Float] struct {
	data []T
	// panels is true if the matrix is stored as one panel per thread, one after the other. A panel contains the columns
	// of its thread.
	panels bool
	// kept lists the elements of a matrix that may differ from 0, nil if they are not known. No other value then shares its memory.
	kept *kernel.Kept
}

// columns returns the offset of row 0 of a thread's columns [from, to) in an m x n matrix, and the distance between
// rows.
func (c *cell[T]) columns(m, n, from, to int) (at, stride int) {
	if c.panels {
		return from * m, to - from
	}
	return from, n
}

// work is the computation of a step.
type work interface {
	// run computes units [from, to) on the given thread.
	run(thread, from, to int)
	// finish combines the results of the threads. It is called after all threads have run.
	finish(threads int)
}

// way is the part of a buffer that one unit of a step accesses. For unit i it is:
type way uint8

const (
	whole   way = iota // any part
	rows               // the i-th of the equal parts of the buffer, one part per unit
	columns            // column i of a matrix
)

// rowsIf returns rows if byRow is true, otherwise whole.
func rowsIf(byRow bool) way {
	if byRow {
		return rows
	}
	return whole
}

// operand is a buffer that a step reads or writes.
type operand struct {
	value *ir.Value
	way   way
}

// step is one element of a plan: work that threads share by units.
type step struct {
	name   string
	work   work
	units  int
	serial bool // the step is too small to share, or not safe to share
	reads  []operand
	writes []operand
	flops  float64
	// columns is true if units are columns rather than rows.
	columns bool
	// overwrites maps values to the values that they overwrite.
	overwrites map[*ir.Value]*ir.Value
	// divisible is true if running a few units at a time is as fast as running all units at once.
	divisible bool
	// after is a step that must run first although this step does not read its results. It is set because all processes
	// must send messages in the same order.
	after *step
	// prepare is called for a thread's units before the first of them is run. It is nil for most steps.
	prepare func(thread, from, to int)
}

// begin calls prepare for a thread's units [from, to), if it is set.
func (s *step) begin(thread, from, to int) {
	if s.prepare != nil {
		s.prepare(thread, from, to)
	}
}

// serialBelow is the number of elements below which a step is serial, because sharing it costs more than the barrier
// saves.
const serialBelow = 2048

// permute copies the elements of a tensor into another order of axes.
type permute[T ir.Float] struct {
	from, to *cell[T]
	shape    []int // shape of the result
	steps    []int // strides in the source, per axis of the result
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

// blocks runs an op that computes independent blocks of elements.
type blocks[T ir.Float] struct {
	op   ir.Blockwise
	args []*cell[T]
	to   *cell[T]
	in   [][][]T // inputs per thread
}

func (w *blocks[T]) run(thread, from, to int) {
	b := w.op.Block
	in := w.in[thread]
	for i, a := range w.args {
		in[i] = a.data[from*b : to*b]
	}
	runBlocks(w.op, w.to.data[from*b:to*b], in)
}

// runBlocks computes whole blocks of an op.
func runBlocks[T ir.Float](op ir.Blockwise, dst []T, in [][]T) {
	switch dst := any(dst).(type) {
	case []float32:
		op.Kernel.Float32(dst, any(in).([][]float32), op.Block)
	case []float64:
		op.Kernel.Float64(dst, any(in).([][]float64), op.Block)
	}
}

func (w *blocks[T]) finish(int) {}

// multiply is a matrix product, batched if there are more than two axes. Its units are the rows of the result, or the
// columns if there is a single product. Each thread packs its share of one operand and all of the other, so the longer
// side should be divided.
type multiply[T ir.Float] struct {
	kernels        *kernels[T]
	a, b, c        *cell[T]
	transA, transB bool
	m, n, k        int
	columns        bool
	zeros          kernel.Zeros // operand that is probably almost all zeros
	kept           *kernel.Kept // its places if they are known
}

// gemm computes an m x n part of the result. It skips the zeros of a sparse operand if that is faster; its part begins in the given
// row and column of it.
func (w *multiply[T]) gemm(row, column, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) {
	var kept kernel.Kept
	if w.kept != nil {
		kept = w.kept.From(row, column)
	}
	if w.zeros != kernel.NoZeros && w.kernels.set.SparseGemm(w.zeros, kept, w.transA, w.transB, m, n, k, a, lda, b, ldb, c, ldc) {
		return
	}
	w.kernels.set.Gemm(w.transA, w.transB, m, n, k, 1, a, lda, b, ldb, 0, c, ldc)
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
		w.gemm(0, from, to-from, w.n, w.k, w.a.data[from*w.k:], to-from, w.b.data, w.ldb(), w.c.data[from*w.n:], w.n)
		return
	}
	for from < to { // the rows may belong to consecutive matrices
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
	lda, row, column := w.k, top, 0
	if w.transA {
		lda, a, row, column = w.m, a[top:], 0, top
	} else {
		a = a[top*w.k:]
	}
	if w.zeros == kernel.ZerosInB {
		row, column = 0, 0
	}
	w.gemm(row, column, bottom-top, w.n, w.k, a, lda, b, w.ldb(), c[top*w.n:], w.n)
}

// multiplyColumns computes columns [left, right) of a product that is not batched.
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
	column := 0
	if w.zeros == kernel.ZerosInB {
		column = left
	}
	w.gemm(0, column, w.m, right-left, w.k, w.a.data, lda, w.b.data[b:], ldb, w.c.data[c:], ldc)
}

// ldb returns the distance between the stored rows of B.
func (w *multiply[T]) ldb() int {
	if w.transB {
		return w.k
	}
	return w.n
}

func (w *multiply[T]) finish(int) {}

// partial computes a [partialProduct]. Its units are the columns of A.
type partial[T ir.Float] struct {
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
	w.gemm(0, from, w.m, w.n, to-from, w.a.data[a:], lda, w.b.data[b:], w.ldb(), w.c.data, w.n)
}

// foreignOp runs a foreign op on copies of its args. Boxed values pass between such ops unchanged.
type foreignOp[T ir.Float] struct {
	op      ir.Implementation
	args    []*ir.Value
	cells   map[*ir.Value]*cell[T]
	boxes   map[*ir.Value]*any
	result  *ir.Value
	failure *failure
}

func (w *foreignOp[T]) run(int, int, int) {
	if w.failure.first != nil {
		return
	}
	if err := w.do(); err != nil {
		w.failure.set(fmt.Errorf("engine: %v: %w", w.op, err))
	}
}

func (w *foreignOp[T]) finish(int) {}

func (w *foreignOp[T]) do() error {
	in := lists.Map(w.args, w.copied)
	out, err := w.op.Do(in)
	if err != nil {
		return err
	}
	if box := w.boxes[w.result]; box != nil {
		*box = out.Data
		return nil
	}
	values, ok := out.Data.([]T)
	if to := w.cells[w.result].data; !ok || len(values) != len(to) {
		return fmt.Errorf("returned %d values of type %T, want %d of %v", len(values), out.Data, len(to), ir.DtypeOf[T]())
	}
	copy(w.cells[w.result].data, values)
	return nil
}

// copied returns a copy of the value a, because some ops overwrite or transpose their inputs in place.
func (w *foreignOp[T]) copied(a *ir.Value) ir.Tensor {
	if box := w.boxes[skipReshapes(a)]; box != nil {
		return ir.Tensor{Shape: a.Shape, Data: *box}
	}
	return ir.Tensor{Shape: a.Shape, Data: slices.Clone(w.cells[skipReshapes(a)].data)}
}

// units runs an op that computes its output in units; see [ir.Units].
type units[T ir.Float] struct {
	op      ir.Units
	args    []*cell[T]
	to      *cell[T]
	in      [][][]T    // inputs per thread
	scratch []*cell[T] // scratch memory per thread
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
	return lists.Of(threads, func(i int) *cell[T] { return &cell[T]{} })
}

// unitStep returns the step for an op in units. All such steps share one scratch memory per thread.
func (c *compiler[T]) unitStep(v *ir.Value, o ir.Unitwise) *step {
	w := &units[T]{op: o.Kernel, to: c.cells[v], scratch: c.scratch}
	joint, ok := o.Kernel.(ir.Joint)
	st := &step{name: o.String(), work: w, units: o.Kernel.Units(), serial: o.Kernel.Work() < serialBelow,
		writes: []operand{{v, rows}}, flops: o.Kernel.Work(), divisible: !ok || !joint.Joint()}
	for i, a := range v.Args {
		w.args = append(w.args, c.cells[skipReshapes(a)])
		st.reads = append(st.reads, operand{skipReshapes(a), rowsIf(o.Kernel.ByUnit(i))})
	}
	for _, s := range c.scratch {
		w.in = append(w.in, make([][]T, len(v.Args)))
		if n := o.Kernel.Scratch(); n > len(s.data) {
			s.data = make([]T, n)
		}
	}
	return st
}

// kernels contains the elementwise kernels of one precision, by primitive. A chain needs three forms: vectors only, a
// number on the right, and a number on the left.
type kernels[T ir.Float] struct {
	set    *kernel.Set[T]
	unary  [ir.Primitives]kernel.Unary[T]
	binary [ir.Primitives]kernel.Binary[T]
	right  [ir.Primitives]kernel.Scalar[T] // f(a[i], s)
	left   [ir.Primitives]kernel.Scalar[T] // f(s, a[i])
}

// kernelSet returns the fastest kernels for this machine.
func kernelSet[T ir.Float]() *kernel.Set[T] {
	if s, ok := any(kernel.Float32()).(*kernel.Set[T]); ok {
		return s
	}
	return any(kernel.Float64()).(*kernel.Set[T])
}

func newKernels[T ir.Float](s *kernel.Set[T]) *kernels[T] {
	k := &kernels[T]{set: s}
	k.unary = [ir.Primitives]kernel.Unary[T]{
		ir.Abs: s.Abs, ir.Sign: s.Sign, ir.Exp: s.Exp, ir.Log: s.Log, ir.Neg: s.Neg, ir.Square: s.Square, ir.Sqrt: s.Sqrt,
		ir.Reciprocal: s.Reciprocal, ir.InvSqrt: s.InvSqrt, ir.Cube: s.Cube, ir.Tanh: s.Tanh, ir.Sigmoid: s.Sigmoid,
		ir.Log1p: s.Log1p, ir.Expm1: s.Expm1, ir.Softplus: s.Softplus,
		ir.Copy: func(dst, a []T) { copy(dst, a) },
	}
	k.binary = [ir.Primitives]kernel.Binary[T]{
		ir.Add: s.Add, ir.Sub: s.Sub, ir.Mul: s.Mul, ir.Div: s.Div, ir.Maximum: s.Max, ir.Minimum: s.Min,
		ir.Lt: s.Lt, ir.Gt: s.Gt, ir.Lte: s.Lte, ir.Gte: s.Gte, ir.Eq: s.Eq, ir.Ne: s.Ne,
	}
	k.right = [ir.Primitives]kernel.Scalar[T]{
		ir.Add: s.AddScalar, ir.Mul: s.MulScalar, ir.Div: s.DivScalar, ir.Maximum: s.MaxScalar, ir.Minimum: s.MinScalar,
		ir.Sub: func(dst, a []T, x T) { s.AddScalar(dst, a, -x) },
		ir.Lt:  s.LtScalar, ir.Gt: s.GtScalar, ir.Lte: s.LteScalar, ir.Gte: s.GteScalar, ir.Eq: s.EqScalar, ir.Ne: s.NeScalar,
	}
	k.left = [ir.Primitives]kernel.Scalar[T]{
		ir.Add: s.AddScalar, ir.Mul: s.MulScalar, ir.Sub: s.ScalarSub, ir.Div: s.ScalarDiv, ir.Maximum: s.MaxScalar, ir.Minimum: s.MinScalar,
		ir.Lt: s.GtScalar, ir.Gt: s.LtScalar, ir.Lte: s.GteScalar, ir.Gte: s.LteScalar, ir.Eq: s.EqScalar, ir.Ne: s.NeScalar,
	}
	for p := ir.Primitive(0); p < ir.Primitives; p++ {
		k.fallBack(p)
	}
	return k
}

// fallBack adds plain loops for the forms of a primitive that have no kernel.
func (k *kernels[T]) fallBack(p ir.Primitive) {
	eval := p.Eval
	if p.Args() == 1 {
		if k.unary[p] == nil {
			k.unary[p] = func(dst, a []T) {
				for i := range dst {
					dst[i] = T(eval(float64(a[i]), 0))
				}
			}
		}
		return
	}
	if k.binary[p] == nil {
		k.binary[p] = func(dst, a, b []T) {
			for i := range dst {
				dst[i] = T(eval(float64(a[i]), float64(b[i])))
			}
		}
	}
	if k.right[p] == nil {
		k.right[p] = func(dst, a []T, s T) {
			for i := range dst {
				dst[i] = T(eval(float64(a[i]), float64(s)))
			}
		}
	}
	if k.left[p] == nil {
		k.left[p] = func(dst, a []T, s T) {
			for i := range dst {
				dst[i] = T(eval(float64(s), float64(a[i])))
			}
		}
	}
}

// startOf returns the initial value of the accumulators of a reduction.
func startOf(r ir.Reducer) float64 {
	if r == ir.Max {
		return math.Inf(-1)
	}
	return 0
}
