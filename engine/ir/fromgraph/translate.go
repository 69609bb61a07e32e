package fromgraph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// Dtype is the precision of nodes of that type.
func Dtype(d tensor.Dtype) (ir.Dtype, error) {
	switch d {
	case tensor.Float32:
		return ir.Float32, nil
	case tensor.Float64:
		return ir.Float64, nil
	}
	return 0, fmt.Errorf("fromgraph: got nodes of type %v, want float32 or float64", d)
}

// Translator makes values of the nodes of one graph. Equal nodes become one value.
type Translator struct {
	dtype  tensor.Dtype
	values map[*gorgonia.Node]*ir.Value

	// Layers holds, by node, the layer that values of the node belong to. Nodes that it lacks belong to none.
	Layers map[*gorgonia.Node]string
}

// New returns a translator of nodes of that type.
func New(d tensor.Dtype) *Translator {
	return &Translator{dtype: d, values: map[*gorgonia.Node]*ir.Value{}}
}

// Leaf makes n the value that is filled from outside.
func (t *Translator) Leaf(n *gorgonia.Node, l ir.Leaf, name string, shape []int) {
	t.values[n] = &ir.Value{Op: l, Shape: shape, Name: name}
}

// Value returns the value of n and translates all of its inputs.
func (t *Translator) Value(n *gorgonia.Node) (*ir.Value, error) {
	if v, ok := t.values[n]; ok {
		return v, nil
	}
	var args []*ir.Value
	for _, child := range Children(n) {
		a, err := t.Value(child)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	v, err := t.op(n, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Name(), err)
	}
	mark(v, args, t.Layers[n])
	t.values[n] = v
	return v, nil
}

// mark records the layer of the values that one op became; args are those that existed before.
func mark(v *ir.Value, args []*ir.Value, layer string) {
	if layer == "" || v.Layer != "" || slices.Contains(args, v) {
		return
	}
	v.Layer = layer
	for _, a := range v.Args {
		mark(a, args, layer)
	}
}

// op translates one operation. Shapes are copied: Gorgonia reuses their memory.
func (t *Translator) op(n *gorgonia.Node, args []*ir.Value) (*ir.Value, error) {
	shape := slices.Clone([]int(n.Shape()))
	id := Identify(n.Op())
	if n.Op() == nil || id.Class == Constant {
		return t.constant(n, shape)
	}
	if !t.native(n, args) {
		return t.foreign(n, args, shape), nil
	}
	switch o := n.Op().(type) {
	case ir.Described:
		return described(o.IR(), args, shape), nil
	case ir.Units:
		return ir.InUnits(o, shape, args...), nil
	case ir.Blocks:
		if volume.Of(shape) > 0 {
			return ir.InBlocks(o, shape, args...), nil
		}
	}
	if v := known(id, args, shape); v != nil {
		return v, nil
	}
	return t.foreign(n, args, shape), nil
}

// described returns the value of an op that implements [ir.Described].
func described(o ir.Op, args []*ir.Value, shape []int) *ir.Value {
	if _, ok := o.(ir.Reshape); ok {
		return ir.Reshaped(args[0], shape)
	}
	return &ir.Value{Op: o, Args: args, Shape: shape}
}

// known translates Gorgonia's own ops; nil for an unknown op.
func known(id Identity, args []*ir.Value, shape []int) *ir.Value {
	switch id.Class {
	case Pointwise:
		if id.F.Args() == len(args) {
			return ir.Point(id.F, shape, args...)
		}
	case MatMul, MatVec, Outer, Dot:
		return product(id, args[0], args[1], shape)
	case Reduction:
		return ir.Reduce(id.Reducer, args[0], shape, id.Axes...)
	case Reshape:
		return ir.Reshaped(args[0], shape)
	case Repeat:
		return repeated(args[0], shape)
	case Size:
		return &ir.Value{Op: ir.Constant{Value: id.Size}, Shape: shape}
	case Transpose:
		if len(id.Axes) == len(shape) {
			return &ir.Value{Op: ir.Transpose{Axes: ir.NewAxes(id.Axes...)}, Args: args, Shape: shape}
		}
	}
	return nil
}

// native reports whether n and its args are tensors, or scalars, in the program's precision; an op on anything else is
// foreign.
func (t *Translator) native(n *gorgonia.Node, args []*ir.Value) bool {
	return n.Dtype() == t.dtype && !slices.ContainsFunc(args, func(a *ir.Value) bool {
		f, ok := a.Op.(ir.Foreign)
		return ok && f.Boxed
	})
}

// constant translates a leaf that no input or parameter fills: its value is fixed.
func (t *Translator) constant(n *gorgonia.Node, shape []int) (*ir.Value, error) {
	if n.Value() == nil {
		return nil, errors.New("is an input without a value that the program does not list")
	}
	if n.Dtype() == t.dtype {
		switch d := n.Value().Data().(type) {
		case float32:
			return &ir.Value{Op: ir.Constant{Value: float64(d)}, Shape: shape}, nil
		case float64:
			return &ir.Value{Op: ir.Constant{Value: d}, Shape: shape}, nil
		}
	}
	return t.foreign(n, nil, shape), nil
}

// repeated translates a repeat along axes of length 1; nil for a repeat of every element, which is no broadcast.
func repeated(a *ir.Value, shape []int) *ir.Value {
	from := a.Shape
	if volume.Of(from) == 1 {
		return ir.Broadcasted(a, shape)
	}
	for len(from) < len(shape) { // a vector gains axes of length 1 at the end
		from = append(slices.Clone(from), 1)
	}
	for i := range shape {
		if from[i] != shape[i] && from[i] != 1 {
			return nil
		}
	}
	a = ir.Reshaped(a, from)
	if slices.Equal(from, shape) {
		return a
	}
	return &ir.Value{Op: ir.Broadcast{}, Args: []*ir.Value{a}, Shape: shape}
}

// product translates products of matrices and vectors; vectors become matrices with an axis of length 1.
func product(id Identity, a, b *ir.Value, shape []int) *ir.Value {
	sizes := func(v *ir.Value) int { return volume.Of(v.Shape) }
	switch id.Class {
	case MatVec:
		b, matrix := ir.Reshaped(b, []int{sizes(b), 1}), []int{volume.Of(shape), 1}
		return ir.Reshaped(&ir.Value{Op: ir.Product{TransA: id.TransA}, Args: []*ir.Value{a, b}, Shape: matrix}, shape)
	case Outer:
		a, b = ir.Reshaped(a, []int{sizes(a), 1}), ir.Reshaped(b, []int{1, sizes(b)})
		return &ir.Value{Op: ir.Product{}, Args: []*ir.Value{a, b}, Shape: shape}
	case Dot:
		n := []int{sizes(a)}
		return ir.Reduce(ir.Sum, ir.Point(ir.Mul, n, ir.Reshaped(a, n), ir.Reshaped(b, n)), shape, 0)
	}
	if len(a.Shape) < 2 || len(b.Shape) != len(a.Shape) {
		return nil
	}
	return &ir.Value{Op: ir.Product{TransA: id.TransA, TransB: id.TransB}, Args: []*ir.Value{a, b}, Shape: shape}
}
