package engine

import (
	"slices"

	"tessera/engine/ir"
)

// makePanels stores the columns of a matrix thread by thread if every step that touches the matrix shares its columns. The
// rows of such a panel are contiguous. Otherwise the processor would prefetch, at the end of a thread's part of a row,
// memory that another thread is about to write.
func (c *compiler[T]) makePanels() {
	units := map[*ir.Value]int{} // of the steps that touch a value by columns; -1 where one does not
	for _, st := range c.steps {
		for _, r := range slices.Concat(st.reads, st.writes) {
			if u, known := units[r.value]; r.way != columns || st.serial || known && u != st.units {
				units[r.value] = -1
			} else {
				units[r.value] = st.units
			}
		}
	}
	for _, w := range c.plan.module.wanted {
		units[skipReshapes(w)] = -1
	}
	for _, v := range slices.Backward(c.plan.module.values) { // what is written over another before that one
		if _, isLeaf := v.Op.(ir.Leaf); isLeaf || units[v] <= 0 || len(v.Shape) != 2 || v.Shape[1] != units[v] {
			units[v] = -1
		}
		if below := c.over[v]; below != nil && units[below] != units[v] {
			units[below] = -1
		}
	}
	for _, v := range c.plan.module.values {
		if cell := c.cells[v]; cell != nil {
			below := c.over[v]
			cell.panels = units[v] > 0 && (below == nil || units[below] > 0)
		}
	}
}
