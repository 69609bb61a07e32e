package engine

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph"
)

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
