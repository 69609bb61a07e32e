package ops

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/ir"
)

// Parallel is an op that is computed in units.
type Parallel interface {
	gorgonia.Op
	ir.Units
}

// units computes units of an output as [Parallel] says.
type units[T Float] func(dst []T, in [][]T, scratch []T, from, to int)

// parallel is every op of this package that is computed in units: shapes, a kernel in both precisions and a derivative.
type parallel struct {
	name    string // with every attribute but the shapes, exactly: the graph merges nodes whose ops and inputs are equal
	in      []tensor.Shape
	out     tensor.Shape
	units   int
	byUnit  []bool // per input
	fixed   []bool // inputs without a derivative, such as places; nil where all have one
	scratch int
	work    float64
	// prepared makes of the last input what the kernels read; nil where they read it as it is.
	prepared *parallel
	f32      units[float32]
	f64      units[float64]
	// derivative returns the gradients with respect to the inputs.
	derivative func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error)
}

var (
	_ Parallel                 = (*parallel)(nil)
	_ gorgonia.SDOp            = (*parallel)(nil)
	_ gorgonia.UsePreallocDoer = (*parallel)(nil)
)

// apply adds the op's node to the graph of in, whose shapes become the op's.
func (o *parallel) apply(in ...*gorgonia.Node) (*gorgonia.Node, error) {
	for _, n := range in {
		o.in = append(o.in, n.Shape().Clone())
	}
	return gorgonia.ApplyOp(o, in...)
}

// Units implements [Parallel].
func (o *parallel) Units() int { return o.units }

// ByUnit implements [Parallel].
func (o *parallel) ByUnit(i int) bool { return o.byUnit[i] }

// Spec implements [Parallel].
func (o *parallel) Spec() any { return nil }

// Scratch implements [Parallel].
func (o *parallel) Scratch() int { return o.scratch }

// Work implements [Parallel].
func (o *parallel) Work() float64 { return max(o.work, float64(o.out.TotalSize())) }

// Prepared implements [Parallel].
func (o *parallel) Prepared() (ir.Units, []int) {
	if o.prepared == nil {
		return nil, nil
	}
	return o.prepared, o.prepared.out
}

// Float32 implements [Parallel].
func (o *parallel) Float32(dst []float32, in [][]float32, scratch []float32, from, to int) {
	o.f32(dst, in, scratch, from, to)
}

// Float64 implements [Parallel].
func (o *parallel) Float64(dst []float64, in [][]float64, scratch []float64, from, to int) {
	o.f64(dst, in, scratch, from, to)
}

// Arity implements [gorgonia.Op].
func (o *parallel) Arity() int { return len(o.in) }

// Type implements [gorgonia.Op].
func (o *parallel) Type() hm.Type {
	a := hm.TypeVariable('a')
	var types []hm.Type
	for _, s := range o.in {
		types = append(types, gorgonia.TensorType{Dims: len(s), Of: a})
	}
	return hm.NewFnType(append(types, gorgonia.TensorType{Dims: len(o.out), Of: a})...)
}

// InferShape implements [gorgonia.Op].
func (o *parallel) InferShape(in ...gorgonia.DimSizer) (tensor.Shape, error) {
	return o.out.Clone(), nil
}

// ReturnsPtr implements [gorgonia.Op].
func (o *parallel) ReturnsPtr() bool { return true }

// CallsExtern implements [gorgonia.Op].
func (o *parallel) CallsExtern() bool { return false }

// OverwritesInput implements [gorgonia.Op].
func (o *parallel) OverwritesInput() int { return -1 }

// WriteHash implements [gorgonia.Op].
func (o *parallel) WriteHash(h hash.Hash) { fmt.Fprintf(h, "tessera.%v", o) }

// Hashcode implements [gorgonia.Op].
func (o *parallel) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String implements [fmt.Stringer].
func (o *parallel) String() string {
	shapes := make([]string, len(o.in))
	for i, s := range o.in {
		shapes[i] = fmt.Sprint(s)
	}
	return fmt.Sprintf("%s %s -> %v", o.name, strings.Join(shapes, " "), o.out)
}

// DiffWRT implements [gorgonia.SDOp].
func (o *parallel) DiffWRT(inputs int) []bool {
	return sloped(inputs, o.fixed)
}

// SymDiff implements [gorgonia.SDOp].
func (o *parallel) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
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
func (o *parallel) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != len(o.in) {
		return nil, fmt.Errorf("%s: got %d inputs, want %d", o.name, len(in), len(o.in))
	}
	dst := tensor.New(tensor.Of(in[0].Dtype()), tensor.WithShape(o.out.Clone()...))
	return o.UsePreallocDo(dst, in...)
}

// UsePreallocDo implements [gorgonia.UsePreallocDoer].
func (o *parallel) UsePreallocDo(dst gorgonia.Value, in ...gorgonia.Value) (gorgonia.Value, error) {
	var err error
	switch in[0].Dtype() {
	case tensor.Float32:
		err = runUnits(o, func(o *parallel) units[float32] { return o.f32 }, dst, in)
	case tensor.Float64:
		err = runUnits(o, func(o *parallel) units[float64] { return o.f64 }, dst, in)
	default:
		err = fmt.Errorf("got values of type %v, want float32 or float64", in[0].Dtype())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return dst, nil
}

// runUnits computes the whole output by the kernel of o.
func runUnits[T Float](o *parallel, kernel func(o *parallel) units[T], dst gorgonia.Value, in []gorgonia.Value) error {
	elements := make([][]T, len(in))
	for i, v := range in {
		var err error
		if elements[i], err = flat[T](v); err != nil {
			return err
		}
		if len(elements[i]) != o.in[i].TotalSize() {
			return fmt.Errorf("input %d: got %d values, want shape %v", i, len(elements[i]), o.in[i])
		}
	}
	out, err := flat[T](dst)
	if err != nil {
		return err
	}
	if len(out) != o.out.TotalSize() {
		return errors.New("the value's size is not the node's")
	}
	if q := o.prepared; q != nil {
		last := len(elements) - 1
		prepared := make([]T, q.out.TotalSize())
		kernel(q)(prepared, elements[last:], make([]T, q.scratch), 0, q.units)
		elements[last] = prepared
	}
	kernel(o)(out, elements, make([]T, o.scratch), 0, o.units)
	return nil
}
