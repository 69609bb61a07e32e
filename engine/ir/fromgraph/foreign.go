package fromgraph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
)

// foreign returns the value of an op, or of a leaf that has a value, that only Gorgonia knows.
func (t *Translator) foreign(n *gorgonia.Node, args []*ir.Value, shape []int) *ir.Value {
	boxed := n.Dtype() != t.dtype
	return &ir.Value{Op: ir.Foreign{Run: &runner{n, boxed, t.dtype}, Boxed: boxed}, Args: args, Shape: shape}
}

// runner runs one node by its own Do.
type runner struct {
	node  *gorgonia.Node
	boxed bool
	dtype tensor.Dtype
}

// String implements [ir.Implementation].
func (r *runner) String() string {
	if r.node.Op() == nil {
		return r.node.Name()
	}
	return r.node.Op().String()
}

// Do implements [ir.Implementation].
func (r *runner) Do(in []ir.Tensor) (out ir.Tensor, err error) {
	value := r.node.Value()
	if r.node.Op() != nil {
		args := make([]gorgonia.Value, len(in))
		for i, t := range in {
			args[i] = wrapped(t)
		}
		if value, err = r.node.Op().Do(args...); err != nil {
			return out, err
		}
	}
	out.Shape = value.Shape()
	switch {
	case r.boxed:
		out.Data = value
	case r.dtype == tensor.Float32:
		out.Data, err = Elements[float32](value)
	default:
		out.Data, err = Elements[float64](value)
	}
	return out, err
}

// wrapped is a tensor in the form that Gorgonia's ops take.
func wrapped(t ir.Tensor) gorgonia.Value {
	switch d := t.Data.(type) {
	case gorgonia.Value:
		return d
	case []float32:
		if len(t.Shape) == 0 {
			return Scalar(d[0])
		}
	case []float64:
		if len(t.Shape) == 0 {
			return Scalar(d[0])
		}
	}
	return tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(t.Data))
}

// Scalar returns v as Gorgonia's scalar value.
func Scalar[T ir.Float](v T) gorgonia.Value {
	if v, ok := any(v).(float32); ok {
		return gorgonia.NewF32(v)
	}
	return gorgonia.NewF64(float64(v))
}

// Elements returns the numbers of a value in row-major order, as copies if the value stores them in another order.
func Elements[T ir.Float](v gorgonia.Value) ([]T, error) {
	if d, ok := v.(*tensor.Dense); ok && !inOrder(d) {
		v = d.Materialize()
	}
	return Backing[T](v)
}

// Backing returns the memory of a value, row-major; it refuses a value that stores its numbers in another order.
func Backing[T ir.Float](v gorgonia.Value) ([]T, error) {
	if d, ok := v.(*tensor.Dense); ok && !inOrder(d) {
		return nil, fmt.Errorf("got a tensor of shape %v that is a view or column-major, want one in row-major order", d.Shape())
	}
	switch d := v.Data().(type) {
	case []T:
		return d, nil
	case T:
		return []T{d}, nil
	}
	return nil, fmt.Errorf("got %T, want %v", v.Data(), ir.DtypeOf[T]())
}

// inOrder reports whether a tensor's memory holds its elements in row-major order, without gaps.
func inOrder(d *tensor.Dense) bool { return !d.RequiresIterator() && d.DataOrder().IsRowMajor() }
