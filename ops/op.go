package ops

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"reflect"
	"strings"
	"unicode"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/engine/ir/fromgraph"
	"tessera/internal/volume"
)

// Derivative returns the gradients with respect to the inputs in of an op with output y and upstream gradient grad: one
// expression per input, nil for fixed inputs. An expression of differentiable ops can be differentiated again.
type Derivative func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error)

// op implements Gorgonia's interface for the ops of this package. Its inputs have fixed shapes.
type op struct {
	spec       any
	name       string // see nameOf
	identity   string // input of the hash
	in         []tensor.Shape
	out        tensor.Shape
	alike      bool   // inputs and output have one type and shape
	fixed      []bool // inputs without a derivative; nil if all have one
	derivative Derivative
	f32        func(dst []float32, in [][]float32) // compute the whole output
	f64        func(dst []float64, in [][]float64)
}

var (
	_ gorgonia.SDOp            = (*op)(nil)
	_ gorgonia.UsePreallocDoer = (*op)(nil)
)

// newOp checks the common fields of ops.
func newOp(spec any, in gorgonia.Nodes, out tensor.Shape, fixed []bool, derivative Derivative) (op, error) {
	o := op{spec: spec, out: out.Clone(), fixed: fixed, derivative: derivative}
	if spec == nil {
		return o, errors.New("ops: an op needs a Spec: a struct that identifies the op, with every attribute")
	}
	o.name = nameOf(spec)
	if len(in) == 0 {
		return o, fmt.Errorf("%s: got no inputs", o.name)
	}
	for i, n := range in {
		if n == nil {
			return o, fmt.Errorf("%s: input %d is nil", o.name, i)
		}
		o.in = append(o.in, n.Shape().Clone())
	}
	o.identity = fmt.Sprintf("%s %#v %v -> %v", reflect.TypeOf(spec).PkgPath(), spec, o.in, o.out)
	if fixed != nil && len(fixed) != len(in) {
		return o, fmt.Errorf("%s: got Fixed of %d inputs, want %d", o.name, len(fixed), len(in))
	}
	return o, nil
}

// nameOf is the spec's type without "Op", and its attributes: "ramp{Above:1 Below:0}".
func nameOf(spec any) string {
	t := reflect.TypeOf(spec)
	name := []rune(strings.TrimSuffix(t.Name(), "Op"))
	if len(name) == 0 {
		return fmt.Sprintf("%T%+v", spec, spec)
	}
	name[0] = unicode.ToLower(name[0])
	if t.Kind() == reflect.Struct && t.NumField() == 0 {
		return string(name)
	}
	return fmt.Sprintf("%s%+v", string(name), spec)
}

// Spec implements [ir.Kernel].
func (o *op) Spec() any { return o.spec }

// Arity implements [gorgonia.Op].
func (o *op) Arity() int { return len(o.in) }

// Type implements [gorgonia.Op].
func (o *op) Type() hm.Type {
	a := hm.TypeVariable('a')
	of := func(s tensor.Shape) hm.Type {
		if o.alike {
			return a
		}
		return gorgonia.TensorType{Dims: len(s), Of: a}
	}
	var types []hm.Type
	for _, s := range o.in {
		types = append(types, of(s))
	}
	return hm.NewFnType(append(types, of(o.out))...)
}

// InferShape implements [gorgonia.Op].
func (o *op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.out.Clone(), nil }

// ReturnsPtr implements [gorgonia.Op].
func (o *op) ReturnsPtr() bool { return true }

// CallsExtern implements [gorgonia.Op].
func (o *op) CallsExtern() bool { return false }

// OverwritesInput implements [gorgonia.Op].
func (o *op) OverwritesInput() int { return -1 }

// WriteHash implements [gorgonia.Op]. The graph merges nodes of equal hash: it covers the spec's type and every attribute.
func (o *op) WriteHash(h hash.Hash) {
	fmt.Fprint(h, o.identity)
}

// Hashcode implements [gorgonia.Op].
func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String implements [fmt.Stringer].
func (o *op) String() string {
	if o.alike {
		return o.name
	}
	shapes := make([]string, len(o.in))
	for i, s := range o.in {
		shapes[i] = fmt.Sprint(s)
	}
	return fmt.Sprintf("%s %s -> %v", o.name, strings.Join(shapes, " "), o.out)
}

// DiffWRT implements [gorgonia.SDOp].
func (o *op) DiffWRT(inputs int) []bool {
	wrt := make([]bool, inputs)
	for i := range wrt {
		wrt[i] = o.fixed == nil || !o.fixed[i]
	}
	return wrt
}

// SymDiff implements [gorgonia.SDOp].
func (o *op) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	if o.derivative == nil {
		return nil, fmt.Errorf("%s: has no derivative", o.name)
	}
	grads, err := o.derivative(in, y, grad)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return grads, nil
}

// Do implements [gorgonia.Op].
func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != len(o.in) {
		return nil, fmt.Errorf("%s: got %d inputs, want %d", o.name, len(in), len(o.in))
	}
	return o.UsePreallocDo(nil, in...)
}

// UsePreallocDo implements [gorgonia.UsePreallocDoer]. A scalar is a new value: Gorgonia passes those by value.
func (o *op) UsePreallocDo(dst gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	var err error
	switch in[0].Dtype() {
	case tensor.Float32:
		dst, err = compute(o, o.f32, dst, in)
	case tensor.Float64:
		dst, err = compute(o, o.f64, dst, in)
	default:
		err = fmt.Errorf("got values of type %v, want float32 or float64", in[0].Dtype())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return dst, nil
}

// compute applies f to the elements of in.
func compute[T Float](o *op, f func(dst []T, in [][]T), dst gorgonia.Value, in []gorgonia.Value) (gorgonia.Value, error) {
	elements := make([][]T, len(in))
	for i, v := range in {
		var err error
		if elements[i], err = fromgraph.Elements[T](v); err != nil {
			return nil, err
		}
		if len(elements[i]) != volume.Of(o.in[i]) {
			return nil, fmt.Errorf("input %d: got %d values, want shape %v", i, len(elements[i]), o.in[i])
		}
	}
	if len(o.out) == 0 {
		var out [1]T
		f(out[:], elements)
		return fromgraph.Scalar(out[0]), nil
	}
	if dst == nil {
		dst = tensor.New(tensor.Of(in[0].Dtype()), tensor.WithShape(o.out.Clone()...))
	}
	out, err := fromgraph.Backing[T](dst)
	if err != nil {
		return nil, err
	}
	if len(out) != volume.Of(o.out) {
		return nil, errors.New("the size of the value differs from the size of the node")
	}
	f(out, elements)
	return dst, nil
}

// layout is an op that only moves elements; package ir has a corresponding op.
type layout struct {
	op
	ir ir.Op
}

// IR implements [ir.Described].
func (l *layout) IR() ir.Op { return l.ir }
