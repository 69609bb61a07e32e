package engine

import (
	"fmt"

	"tessera/internal/engine/ir"
)

// selectedProduct is an [ir.Blockwise] op that copies a few elements of a product A Bᵀ and sets the others to 0. Only
// the copied elements of the product are computed. The args are A, B and the values that determine which elements are
// copied.
type selectedProduct struct {
	ir.Product
	of    ir.Blockwise
	which *ir.Selection
}

func (p selectedProduct) String() string { return fmt.Sprintf("%v of %v", p.of, p.Product) }

// selectedShare is the minimum ratio of the length of a row to the number of computed elements. Above this ratio,
// computing single elements is faster than computing tiles.
const selectedShare = 16

// selectedRows is the maximum number of elements that are computed together.
const selectedRows = 128

// selectElements joins a product with an op that copies a few of its elements, if nothing else reads the product.
func selectElements(m *module) {
	readers := m.readers()
	m.rebuild(func(v *ir.Value) *ir.Value {
		o, ok := v.Op.(ir.Blockwise)
		if !ok || len(v.Args) < 2 || len(v.Shape) != 2 {
			return v
		}
		selecting, ok := o.Kernel.(ir.Selecting)
		if !ok || selecting.Selection() == nil || selecting.Selection().Most*selectedShare > o.Block {
			return v
		}
		by, all := v.Args[:len(v.Args)-1], v.Args[len(v.Args)-1]
		p, ok := all.Op.(ir.Product)
		if !ok || p.TransA || !p.TransB || readers[all] != 1 {
			return v
		}
		return &ir.Value{Op: selectedProduct{p, o, selecting.Selection()}, Args: append([]*ir.Value{all.Args[0], all.Args[1]}, by...), Shape: v.Shape}
	})
}

// selected computes a [selectedProduct]. Its units are rows. The elements have the same bits as in the complete
// product, provided that the order of a Gemm's additions depends only on the number of summands. If they are too many in a run, it
// computes the complete product.
type selected[T ir.Float] struct {
	kernels *kernels[T]
	a, b    *cell[T]
	keeper  *keeper[T] // determines which elements are computed
	k       int
	threads []selectedThread[T]
}

// selectedThread is the scratch memory of one thread.
type selectedThread[T ir.Float] struct {
	rows    []T // rows of B, one for each index
	results []T
}

func (w *selected[T]) run(thread, from, to int) {
	n, listed := w.keeper.n, 0
	for i := from; i < to; i++ {
		if places, ok := w.keeper.places(thread, i); ok {
			listed += len(places)
		} else {
			listed += n
		}
	}
	if listed*selectedShare > (to-from)*n {
		rows := w.keeper.to.data[from*n : to*n]
		w.kernels.set.Gemm(false, true, to-from, n, w.k, 1, w.a.data[from*w.k:], w.k, w.b.data, w.k, 0, rows, n)
		w.keeper.whole(thread, from, to, rows)
		return
	}
	for i := from; i < to; i++ {
		places, ok := w.keeper.to.kept.Row(i)
		if !ok {
			row := w.keeper.to.data[i*n : (i+1)*n]
			w.kernels.set.Gemm(false, true, 1, n, w.k, 1, w.a.data[i*w.k:], w.k, w.b.data, w.k, 0, row, n)
			w.keeper.whole(thread, i, i+1, row)
		}
		for len(places) > 0 {
			some := min(len(places), selectedRows)
			w.some(thread, i, places[:some])
			places = places[some:]
		}
	}
}

// some computes elements of row i.
func (w *selected[T]) some(thread, i int, places []int32) {
	t := &w.threads[thread]
	for q, j := range places {
		copy(t.rows[q*w.k:(q+1)*w.k], w.b.data[int(j)*w.k:][:w.k])
	}
	w.kernels.set.Gemm(false, true, 1, len(places), w.k, 1, w.a.data[i*w.k:(i+1)*w.k], w.k, t.rows, w.k, 0, t.results, len(t.results))
	for q, j := range places {
		w.keeper.to.data[i*w.keeper.n+int(j)] = t.results[q]
	}
}

func (w *selected[T]) finish(int) {}

func (c *compiler[T]) selectedStep(v *ir.Value, o selectedProduct) *step {
	a, b := skipReshapes(v.Args[0]), skipReshapes(v.Args[1])
	w := &selected[T]{kernels: c.kernels, a: c.cells[a], b: c.cells[b], k: v.Args[0].Shape[1], keeper: c.keeper(v, o.of, o.which, v.Args[2:])}
	reads := []operand{{a, rows}, {b, whole}}
	for _, by := range v.Args[2:] {
		by = skipReshapes(by)
		reads = append(reads, operand{by, rows})
	}
	most := min(w.keeper.to.kept.Most, selectedRows)
	for range c.plan.team.Threads() {
		w.threads = append(w.threads, selectedThread[T]{rows: isolated[T](most * w.k), results: isolated[T](most)})
	}
	flops := 2 * float64(v.Shape[0]*min(w.keeper.to.kept.Most, v.Shape[1]/selectedShare)*w.k)
	return &step{name: fmt.Sprintf("%v %d×%d×%d", o, v.Shape[0], w.k, v.Shape[1]), work: w, units: v.Shape[0], serial: flops < 16*serialBelow,
		reads: reads, writes: []operand{{v, rows}}, flops: flops, divisible: o.which.Most > 0}
}
