package engine

import (
	"fmt"
	"slices"

	"tessera/engine/ir"
)

// foreignOp runs an op that the engine knows only by its own implementation, on copies of the buffers. Boxed values pass
// between such ops unchanged.
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
	in := make([]ir.Tensor, len(w.args))
	for i, a := range w.args {
		in[i] = w.copied(a)
	}
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

// copied returns a copy of a value: some ops overwrite or transpose their inputs in place.
func (w *foreignOp[T]) copied(a *ir.Value) ir.Tensor {
	if box := w.boxes[skipReshapes(a)]; box != nil {
		return ir.Tensor{Shape: a.Shape, Data: *box}
	}
	return ir.Tensor{Shape: a.Shape, Data: slices.Clone(w.cells[skipReshapes(a)].data)}
}
