package ops

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// op is every op of this package: a name, a kernel in both precisions and a derivative.
type op struct {
	name  string // with every attribute, exactly: the graph merges nodes whose ops and inputs are equal
	arity int
	rows  bool // blocks are rows of the last axis, not elements
	f32   kernel[float32]
	f64   kernel[float64]
	// derivative returns the gradient with respect to the only input.
	derivative func(x, y, grad *gorgonia.Node) (*gorgonia.Node, error)
	// derivatives is derivative of an op of several inputs: a gradient for each, nil for those that are fixed.
	derivatives func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error)
	fixed       []bool // inputs without a derivative, since the output depends on them in steps alone; nil where all have one
}

var (
	_ Kernel                   = (*op)(nil)
	_ gorgonia.SDOp            = (*op)(nil)
	_ gorgonia.UsePreallocDoer = (*op)(nil)
)

// Block implements [Kernel].
func (o *op) Block(shape []int) int {
	if o.rows && len(shape) > 0 {
		return shape[len(shape)-1]
	}
	return 1
}

// Spec implements [Kernel].
func (o *op) Spec() any { return nil }

// Float32 implements [Kernel].
func (o *op) Float32(dst []float32, in [][]float32, block int) { o.f32(dst, in, block) }

// Float64 implements [Kernel].
func (o *op) Float64(dst []float64, in [][]float64, block int) { o.f64(dst, in, block) }

// Arity implements [gorgonia.Op].
func (o *op) Arity() int { return o.arity }

// Type implements [gorgonia.Op]: all inputs and the output are alike.
func (o *op) Type() hm.Type {
	types := make([]hm.Type, o.arity+1)
	for i := range types {
		types[i] = hm.TypeVariable('a')
	}
	return hm.NewFnType(types...)
}

// InferShape implements [gorgonia.Op].
func (o *op) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	shapes, err := gorgonia.DimSizersToShapes(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	if len(shapes) != o.arity {
		return nil, fmt.Errorf("%s: got %d inputs, want %d", o.name, len(shapes), o.arity)
	}
	for _, s := range shapes[1:] {
		if !slices.Equal(s, shapes[0]) {
			return nil, fmt.Errorf("%s: shapes %v and %v differ", o.name, shapes[0], s)
		}
	}
	return shapes[0].Clone(), nil
}

// ReturnsPtr implements [gorgonia.Op].
func (o *op) ReturnsPtr() bool { return true }

// CallsExtern implements [gorgonia.Op].
func (o *op) CallsExtern() bool { return false }

// OverwritesInput implements [gorgonia.Op].
func (o *op) OverwritesInput() int { return -1 }

// WriteHash implements [gorgonia.Op].
func (o *op) WriteHash(h hash.Hash) { fmt.Fprintf(h, "tessera.%s", o.name) }

// Hashcode implements [gorgonia.Op].
func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String implements [fmt.Stringer].
func (o *op) String() string { return o.name }

// DiffWRT implements [gorgonia.SDOp].
func (o *op) DiffWRT(inputs int) []bool {
	return sloped(inputs, o.fixed)
}

// sloped reports for each input whether there is a derivative with respect to it.
func sloped(inputs int, fixed []bool) []bool {
	wrt := make([]bool, inputs)
	for i := range wrt {
		wrt[i] = fixed == nil || !fixed[i]
	}
	return wrt
}

// SymDiff implements [gorgonia.SDOp].
func (o *op) SymDiff(in gorgonia.Nodes, output, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var grads gorgonia.Nodes
	var err error
	switch {
	case o.derivatives != nil:
		grads, err = o.derivatives(in, output, grad)
	case o.derivative != nil:
		var n *gorgonia.Node
		n, err = o.derivative(in[0], output, grad)
		grads = gorgonia.Nodes{n}
	default:
		err = errors.New("has no derivative")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return grads, nil
}

// Do implements [gorgonia.Op].
func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != o.arity {
		return nil, fmt.Errorf("%s: got %d inputs, want %d", o.name, len(in), o.arity)
	}
	dst := tensor.New(tensor.Of(in[0].Dtype()), tensor.WithShape(in[0].Shape().Clone()...))
	return o.UsePreallocDo(dst, in...)
}

// UsePreallocDo implements [gorgonia.UsePreallocDoer].
func (o *op) UsePreallocDo(dst gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	block := o.Block(in[0].Shape())
	var err error
	switch in[0].Dtype() {
	case tensor.Float32:
		dst, err = run(o.f32, dst, in, block)
	case tensor.Float64:
		dst, err = run(o.f64, dst, in, block)
	default:
		err = fmt.Errorf("got values of type %v, want float32 or float64", in[0].Dtype())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return dst, nil
}

// run applies k to the elements of in. A scalar in gives a scalar out: Gorgonia passes those by value.
func run[T Float](k kernel[T], dst gorgonia.Value, in []gorgonia.Value, block int) (gorgonia.Value, error) {
	elements := make([][]T, len(in))
	for i, v := range in {
		var err error
		if elements[i], err = flat[T](v); err != nil {
			return nil, err
		}
	}
	if len(in[0].Shape()) == 0 {
		var out [1]T
		k(out[:], elements, block)
		return scalar(out[0]), nil
	}
	out, err := flat[T](dst)
	if err != nil {
		return nil, err
	}
	for _, e := range elements {
		if len(e) != len(out) {
			return nil, fmt.Errorf("got %d values, want %d", len(e), len(out))
		}
	}
	k(out, elements, block)
	return dst, nil
}

// scalar returns v as Gorgonia's scalar value.
func scalar[T Float](v T) gorgonia.Value {
	if v, ok := any(v).(float32); ok {
		return gorgonia.NewF32(v)
	}
	return gorgonia.NewF64(float64(v))
}

// flat returns the elements of v in row-major order.
func flat[T Float](v gorgonia.Value) ([]T, error) {
	if d, ok := v.(*tensor.Dense); ok {
		if d.DataOrder().IsColMajor() {
			return nil, errors.New("got a column-major tensor, want row-major")
		}
		if d.RequiresIterator() { // a view with gaps
			v = d.Materialize()
		}
	}
	switch e := v.Data().(type) {
	case []T:
		return e, nil
	case T:
		return []T{e}, nil
	}
	return nil, fmt.Errorf("got %T, want values of one precision", v.Data())
}
