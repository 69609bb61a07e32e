package engine

import (
	"fmt"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
)

// scatter computes the gradient of a table of which a program reads a few rows. Its memory belongs to it alone and stays 0 but for the
// rows of the last run: a run clears these rows instead of the table, and the optimizer may leave out the others. Sums have the
// bits of the kernel that it replaces. Its units are rows.
type scatter[T ir.Float] struct {
	indices, values, to *cell[T]
	weights             *cell[T] // nil for none
	set                 *kernel.Set[T]
	width               int
	touched             [][]int32 // rows of the last run, by thread
	last                []int32   // for each row, the run that touched it last
	runs                []int32   // number of runs of each thread
}

// scatters returns the width of the rows if v is a gradient that a [scatter] can compute: nothing but the optimizer reads it.
func (c *compiler[T]) scatters(v *ir.Value, o ir.Unitwise) int {
	p := c.plan
	gradients := p.module.wanted[len(p.program.Taps) : len(p.program.Taps)+len(p.program.Gradients)]
	if k, ok := o.Kernel.(ir.Scattering); ok && slices.Contains(gradients, v) && p.module.readers()[v] == 1 {
		return k.Width()
	}
	return 0
}

// scatterStep returns the step of a gradient of few rows.
func (c *compiler[T]) scatterStep(v *ir.Value, width int) *step {
	indices, values, threads, height := skipReshapes(v.Args[0]), skipReshapes(v.Args[1]), c.plan.team.Threads(), v.Shape[0]
	w := &scatter[T]{indices: c.cells[indices], values: c.cells[values], to: c.cells[v], width: width, set: kernelSet[T](),
		touched: make([][]int32, threads), last: make([]int32, height), runs: make([]int32, threads)}
	c.scattered[v], c.apart[v] = w, true
	reads := []operand{{indices, whole}, {values, whole}}
	if len(v.Args) > 2 {
		weights := skipReshapes(v.Args[2])
		w.weights, reads = c.cells[weights], append(reads, operand{weights, whole})
	}
	return &step{name: fmt.Sprintf("%v, touched rows", v.Op), work: w, units: height, reads: reads,
		writes: []operand{{v, rows}}, flops: float64(len(c.cells[indices].data) * width)}
}

func (w *scatter[T]) run(thread, from, to int) {
	dst := w.to.data
	for _, k := range w.touched[thread] {
		clear(dst[int(k)*w.width : (int(k)+1)*w.width])
	}
	w.runs[thread]++
	list, run := w.touched[thread][:0], w.runs[thread]
	each := len(w.indices.data) * w.width / len(w.values.data)
	for i, index := range w.indices.data {
		k := int(index)
		if k < from || k >= to || T(k) != index {
			continue
		}
		if w.weights != nil && w.weights.data[i] == 0 {
			continue
		}
		if w.last[k] != run {
			w.last[k], list = run, append(list, int32(k))
		}
		row, g := dst[k*w.width:(k+1)*w.width], w.values.data[i/each*w.width:][:w.width]
		if w.weights != nil {
			w.set.AddScaled(row, row, g, w.weights.data[i])
			continue
		}
		for j, v := range g {
			row[j] += v
		}
	}
	w.touched[thread] = list
}

func (w *scatter[T]) finish(int) {}
