package engine

import "tessera/engine/ir"

// multiply is a matrix product, batched if there are more than two axes. Its units are the rows of the result, or the
// columns of a single product. Each thread packs its share of one operand and the whole of the other, so the longer side
// should be split.
type multiply[T ir.Float] struct {
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

// partial computes a [partialProduct]: its units are the columns of A.
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
	w.kernels.set.Gemm(false, w.transB, w.m, w.n, to-from, 1, w.a.data[a:], lda, w.b.data[b:], w.ldb(), 0, w.c.data, w.n)
}
