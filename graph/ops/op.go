package ops

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

var (
	_ gorgonia.Op  = (*op)(nil)
	_ ir.Blocks    = (*blockwise)(nil)
	_ ir.Units     = (*unitwise)(nil)
	_ ir.Divisible = (*unitwise)(nil)

	_ ir.Scattering = (*unitwise)(nil)
	_ ir.Joint      = (*unitwise)(nil)
	_ ir.Units      = (*unitPart)(nil)
)

// Derivative returns the gradients of an op with respect to its inputs. y is the output and grad the upstream gradient.
// The result has one expression per input, nil for fixed inputs. An expression of differentiable ops can be
// differentiated again.
type Derivative func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error)

// op implements Gorgonia's interface for the ops of this package. Its inputs have fixed shapes.
type op struct {
	spec       any
	name       string // result of nameOf
	identity   string // text that the hash is computed from
	in         []tensor.Shape
	out        tensor.Shape
	alike      bool   // all inputs and the output have the same type and shape
	fixed      []bool // inputs without a derivative; nil if all have one
	derivative Derivative
	f32        func(dst []float32, in [][]float32) // computes the complete output
	f64        func(dst []float64, in [][]float64)
}

var (
	_ gorgonia.SDOp            = (*op)(nil)
	_ gorgonia.UsePreallocDoer = (*op)(nil)
)

// newOp returns the common fields of an op, or an error if they are invalid.
func newOp(spec any, in gorgonia.Nodes, out tensor.Shape, fixed []bool, derivative Derivative) (op, error) {
	o := op{spec: spec, out: out.Clone(), fixed: fixed, derivative: derivative}
	if spec == nil || !plain(reflect.ValueOf(spec)) {
		return o, fmt.Errorf("ops: got the Spec %T, want a struct that identifies the op by values of its attributes, without pointers, maps and functions", spec)
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

// plain reports whether the text of a value is the same in every run: it has no addresses, and no order of a map.
func plain(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	case reflect.Interface:
		return v.IsNil() || plain(v.Elem())
	case reflect.Slice, reflect.Array:
		return v.Len() == 0 || v.Type().Elem().Kind() < reflect.Array || plain(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if !plain(v.Field(i)) {
				return false
			}
		}
	}
	return true
}

// nameOf returns the name of an op: the type of its spec without "Op", and its attributes, as in "ramp{Above:1
// Below:0}".
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

func (o *op) Spec() any  { return o.spec }
func (o *op) Arity() int { return len(o.in) }

func (o *op) Type() hm.Type {
	a := hm.TypeVariable('a')
	of := func(s tensor.Shape) hm.Type {
		if o.alike {
			return a
		}
		return gorgonia.TensorType{Dims: len(s), Of: a}
	}
	types := lists.Map(o.in, of)
	return hm.NewFnType(append(types, of(o.out))...)
}

func (o *op) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) { return o.out.Clone(), nil }
func (o *op) ReturnsPtr() bool                                      { return true }
func (o *op) CallsExtern() bool                                     { return false }
func (o *op) OverwritesInput() int                                  { return -1 }

// WriteHash implements [gorgonia.Op]. The graph merges nodes with equal hashes, so the hash includes the spec's type and
// every attribute.
func (o *op) WriteHash(h hash.Hash) {
	fmt.Fprint(h, o.identity)
}

func (o *op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

func (o *op) String() string {
	if o.alike {
		return o.name
	}
	shapes := lists.Map(o.in, func(s tensor.Shape) string { return fmt.Sprint(s) })
	return fmt.Sprintf("%s %s -> %v", o.name, strings.Join(shapes, " "), o.out)
}

func (o *op) DiffWRT(inputs int) []bool {
	return lists.Of(inputs, func(i int) bool { return o.fixed == nil || !o.fixed[i] })
}

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

func (o *op) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	if len(in) != len(o.in) {
		return nil, fmt.Errorf("%s: got %d inputs, want %d", o.name, len(in), len(o.in))
	}
	return o.UsePreallocDo(nil, in...)
}

// UsePreallocDo implements [gorgonia.UsePreallocDoer]. For a scalar it returns a new value, because Gorgonia passes scalars
// by value.
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

// compute applies f, a kernel of o, to the elements of the inputs. It allocates the output if dst is nil.
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

func (l *layout) IR() ir.Op { return l.ir }

// Float is the precision of a graph.
type Float interface{ float32 | float64 }

// Kernel is an op that is computed in blocks.
type Kernel interface {
	gorgonia.Op
	ir.Blocks
}

// Blockwise describes an op whose inputs and output have the same shape. It computes its output in independent blocks of
// consecutive elements: each element from the same element of the inputs, or each row of the last axis from the same row of
// the inputs. The engine fuses such ops with neighbouring ones and distributes the blocks over its threads.
type Blockwise struct {
	// Spec identifies the op: a struct of a type that only this op uses, whose fields are all attributes of the op
	// (numbers, strings, and lists or structs of them, no pointers). Ops with equal specs are equal: the graph computes
	// equal expressions once. The op's name is the type's name without "Op".
	Spec any
	Rows bool // blocks are rows of the last axis, not elements
	// Float32 computes dst, a whole number of blocks of the given size, from equally long slices of the inputs. dst may be
	// one of the inputs. Float32 must be safe for concurrent use. [Map] and [Map2] convert a function of numbers.
	Float32 func(dst []float32, in [][]float32, block int)
	// Float64 is Float32 in double precision.
	Float64 func(dst []float64, in [][]float64, block int)
	// Derivative returns the gradients; nil for an op without derivative.
	Derivative Derivative
	// Fixed marks the inputs without a derivative, such as indices; nil if there are none.
	Fixed []bool
	// Sparse is true if almost all values of the output are 0. Matrix products then check for zeros in the output, and
	// in values computed from the output element by element. It does not affect results.
	Sparse bool
	// KeepsZeros is true if the output is 0 wherever the last input is 0, whatever the other inputs are.
	KeepsZeros bool
	// Selects is not nil if the op copies a few elements of its last input and sets all others to 0. If the last
	// input is a matrix product, the engine then computes only the copied elements.
	Selects *ir.Selection
}

// Apply adds the op to the graph of its inputs. It returns an error if their shapes differ or the description is incomplete.
func (b Blockwise) Apply(in ...*gorgonia.Node) (*gorgonia.Node, error) {
	o := &blockwise{describe: b}
	var err error
	if len(in) > 0 && in[0] != nil {
		o.out = in[0].Shape()
	}
	if o.op, err = newOp(b.Spec, in, o.out, b.Fixed, b.Derivative); err != nil {
		return nil, err
	}
	if b.Float32 == nil || b.Float64 == nil {
		return nil, fmt.Errorf("%s: got no kernel for one of the precisions, want Float32 and Float64", o.name)
	}
	for _, s := range o.in[1:] {
		if !slices.Equal(s, o.out) {
			return nil, fmt.Errorf("%s: shapes %v and %v differ", o.name, o.out, s)
		}
	}
	o.alike = true
	o.f32 = func(dst []float32, in [][]float32) { b.Float32(dst, in, o.Block(o.out)) }
	o.f64 = func(dst []float64, in [][]float64) { b.Float64(dst, in, o.Block(o.out)) }
	return gorgonia.ApplyOp(o, in...)
}

type blockwise struct {
	op
	describe Blockwise
}

var (
	_ Kernel    = (*blockwise)(nil)
	_ ir.Sparse = (*blockwise)(nil)

	_ ir.Selecting   = (*blockwise)(nil)
	_ ir.ZeroKeeping = (*blockwise)(nil)
)

func (o *blockwise) MostlyZero() bool         { return o.describe.Sparse }
func (o *blockwise) KeepsZeros() bool         { return o.describe.KeepsZeros }
func (o *blockwise) Selection() *ir.Selection { return o.describe.Selects }

func (o *blockwise) Block(shape []int) int {
	if o.describe.Rows && len(shape) > 0 {
		return shape[len(shape)-1]
	}
	return 1
}

func (o *blockwise) Float32(dst []float32, in [][]float32, block int) {
	o.describe.Float32(dst, in, block)
}

func (o *blockwise) Float64(dst []float64, in [][]float64, block int) {
	o.describe.Float64(dst, in, block)
}

// kernel computes the elements of dst; see [Blockwise].Float32.
type kernel[T Float] = func(dst []T, in [][]T, block int)

// Map returns the kernel of a function of one number.
func Map[T Float](f func(x T) T) func(dst []T, in [][]T, block int) {
	return func(dst []T, in [][]T, _ int) {
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x)
		}
	}
}

// Map2 returns the kernel of a function of two numbers.
func Map2[T Float](f func(x, y T) T) func(dst []T, in [][]T, block int) {
	return func(dst []T, in [][]T, _ int) {
		second := in[1][:len(dst)]
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x, second[i])
		}
	}
}

// Parallel is an op that is computed in units.
type Parallel interface {
	gorgonia.Op
	ir.Units
}

// Unitwise describes an op whose output consists of units: slices of equal length, in row-major order, that can be
// computed independently. The engine distributes the units over its threads.
type Unitwise struct {
	// Spec identifies the op; see [Blockwise].Spec. It need not contain shapes.
	Spec   any
	Out    []int  // shape of the output
	Units  int    // number of units
	ByUnit []bool // marks each input that has the same number of units and of which unit i of the output reads only unit i
	// Scratch is the number of elements of workspace for one call.
	Scratch int
	// Work is the approximate number of additions and multiplications for the entire output. The default and the minimum are
	// one per element.
	Work float64
	// Prepared, if not nil, is an op that transforms the last input, once for all units. The kernels then read the
	// transformed input. Prepared needs no derivative.
	Prepared *Unitwise
	// Float32 computes units [from, to) of dst and leaves the other units unchanged. dst is the complete output, in are the
	// complete inputs, and scratch has undefined contents. Float32 must be safe for concurrent use.
	Float32 func(dst []float32, in [][]float32, scratch []float32, from, to int)
	// Float64 is Float32 in double precision.
	Float64 func(dst []float64, in [][]float64, scratch []float64, from, to int)
	// Derivative returns the gradients; nil for an op without derivative.
	Derivative Derivative
	// Fixed marks the inputs without a derivative, for example indices; nil if there are none.
	Fixed []bool
	// Division determines how the op is divided among processes that train one model together. The default is correct
	// for every op, but slow: every process computes the complete op from the images of all processes. With another
	// division, kernels must not assume the total number of units or images: with [ir.ByUnits] the arguments have fewer
	// units, with [ir.BySums] fewer images. The size of one unit or image does not change.
	Division ir.Division
	// Scatters is the number of values of a row if the op is that of [ir.Scattering], otherwise 0.
	Scatters int
	// Joint is true if one call for many units is faster than a call for every few of them.
	Joint bool
	// At returns kernels for a subset of the units: their unit i is unit at(i) of the op. It requires the division
	// [ir.ByUnits]. At may be nil if the kernels use the index of a unit only to locate its values.
	At func(at func(unit int) int) (Float32 func(dst []float32, in [][]float32, scratch []float32, from, to int),
		Float64 func(dst []float64, in [][]float64, scratch []float64, from, to int))
}

// Apply adds the op to the graph of its inputs. It returns an error if the description is incomplete.
func (u Unitwise) Apply(in ...*gorgonia.Node) (*gorgonia.Node, error) {
	o, err := u.op(in)
	if err != nil {
		return nil, err
	}
	if q := u.Prepared; q != nil {
		if o.prepared, err = q.op(in[len(in)-1:]); err != nil {
			return nil, err
		}
	}
	o.f32 = func(dst []float32, in [][]float32) {
		all(o, dst, in, func(o *unitwise) units[float32] { return o.describe.Float32 })
	}
	o.f64 = func(dst []float64, in [][]float64) {
		all(o, dst, in, func(o *unitwise) units[float64] { return o.describe.Float64 })
	}
	return gorgonia.ApplyOp(o, in...)
}

// op returns the op for the given inputs, without the op of the prepared input. It returns an error if the description
// is incomplete.
func (u Unitwise) op(in gorgonia.Nodes) (*unitwise, error) {
	o := &unitwise{describe: u}
	var err error
	if o.op, err = newOp(u.Spec, in, tensor.Shape(u.Out), u.Fixed, u.Derivative); err != nil {
		return nil, err
	}
	switch {
	case u.Float32 == nil || u.Float64 == nil:
		err = errors.New("got no kernel for one of the precisions, want Float32 and Float64")
	case len(u.ByUnit) != len(in):
		err = fmt.Errorf("got ByUnit of %d inputs, want %d", len(u.ByUnit), len(in))
	case len(u.Out) == 0:
		err = errors.New("got a scalar output, want at least one axis")
	case u.Units < 1 || volume.Of(u.Out)%u.Units != 0:
		err = fmt.Errorf("shape %v does not divide into %d units", u.Out, u.Units)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return o, nil
}

// units computes some units of an output; see [Unitwise].Float32.
type units[T Float] = func(dst []T, in [][]T, scratch []T, from, to int)

type unitwise struct {
	op
	describe Unitwise
	prepared *unitwise
}

var _ Parallel = (*unitwise)(nil)

// all computes all units of the output.
func all[T Float](o *unitwise, dst []T, in [][]T, kernel func(o *unitwise) units[T]) {
	if q := o.prepared; q != nil {
		last := len(in) - 1
		prepared := make([]T, volume.Of(q.out))
		kernel(q)(prepared, in[last:], make([]T, q.describe.Scratch), 0, q.describe.Units)
		in[last] = prepared
	}
	kernel(o)(dst, in, make([]T, o.describe.Scratch), 0, o.describe.Units)
}

func (o *unitwise) Units() int        { return o.describe.Units }
func (o *unitwise) Joint() bool       { return o.describe.Joint }
func (o *unitwise) Width() int        { return o.describe.Scatters }
func (o *unitwise) ByUnit(i int) bool { return o.describe.ByUnit[i] }
func (o *unitwise) Scratch() int      { return o.describe.Scratch }
func (o *unitwise) Work() float64     { return max(o.describe.Work, float64(volume.Of(o.out))) }

func (o *unitwise) Prepared() (ir.Units, []int) {
	if o.prepared == nil {
		return nil, nil
	}
	return o.prepared, o.prepared.out
}

func (o *unitwise) Float32(dst []float32, in [][]float32, scratch []float32, from, to int) {
	o.describe.Float32(dst, in, scratch, from, to)
}

func (o *unitwise) Float64(dst []float64, in [][]float64, scratch []float64, from, to int) {
	o.describe.Float64(dst, in, scratch, from, to)
}

func (o *unitwise) Division() ir.Division { return o.describe.Division }

func (o *unitwise) Part(n int, at func(unit int) int) ir.Units {
	p := &unitPart{unitwise: o, units: n, f32: o.describe.Float32, f64: o.describe.Float64}
	if o.describe.At != nil {
		p.f32, p.f64 = o.describe.At(at)
	}
	return p
}

// unitPart is an op that computes some of the units of another op.
type unitPart struct {
	*unitwise
	units int
	f32   units[float32]
	f64   units[float64]
}

func (p *unitPart) String() string { return fmt.Sprintf("%s, %d units", p.name, p.units) }
func (p *unitPart) Units() int     { return p.units }
func (p *unitPart) Width() int     { return 0 }

func (p *unitPart) Work() float64 {
	return p.unitwise.Work() * float64(p.units) / float64(p.describe.Units)
}

// Prepared implements [ir.Units]. It returns nil because the last input of the entire op is already prepared.
func (p *unitPart) Prepared() (ir.Units, []int) { return nil, nil }

func (p *unitPart) Float32(dst []float32, in [][]float32, scratch []float32, from, to int) {
	p.f32(dst, in, scratch, from, to)
}

func (p *unitPart) Float64(dst []float64, in [][]float64, scratch []float64, from, to int) {
	p.f64(dst, in, scratch, from, to)
}

// PerImage describes a function of single images for [Each]. Its kernels must be safe for concurrent use.
type PerImage struct {
	Spec any     // identifies the function, like [Blockwise].Spec
	Out  []int   // shape of one result
	Work float64 // approximate number of additions per image

	Float32 func(dst, image []float32)
	Float64 func(dst, image []float64)
	// Pull maps the gradient v of the result to the gradient of the image, and writes it to dst. Push maps a direction
	// v of the image to the derivative of the result in this direction. Each map is the transpose of the other.
	Pull32, Push32 func(dst, image, v []float32)
	Pull64, Push64 func(dst, image, v []float64)
}

// eachPullOp is the spec of the derivative of [Each]; its inputs are images and gradients of the results. eachPushOp is
// the spec of the transpose of that derivative; its inputs are images and directions. Of is the spec of the function.
type (
	eachPullOp struct{ Of any }
	eachPushOp struct{ Of any }
)

// Each applies f to every image of x, whose first axis is the batch. The result can be differentiated any number of times; the
// second derivative of f is defined as 0.
func Each(x *gorgonia.Node, f PerImage) (*gorgonia.Node, error) {
	if len(x.Shape()) < 2 {
		return nil, errors.New("each: want a batch of images")
	}
	e := eachImage{f, x.Shape().Clone(), slices.Concat(tensor.Shape{x.Shape()[0]}, f.Out)}
	o := &Unitwise{
		Spec:     f.Spec,
		Out:      e.out,
		Units:    e.in[0],
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Work:     f.Work * float64(e.in[0]),
		Float32:  each(e, f.Float32),
		Float64:  each(e, f.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(e.pull(in[0], grad))
		},
	}
	return o.Apply(x)
}

// eachImage combines a function of images with the shapes of its input and output, batch included.
type eachImage struct {
	PerImage
	in, out tensor.Shape
}

func (e eachImage) pull(x, v *gorgonia.Node) (*gorgonia.Node, error) {
	return e.linear(eachPullOp{e.Spec}, e.in, e.Pull32, e.Pull64, e.push).Apply(x, v)
}

func (e eachImage) push(x, v *gorgonia.Node) (*gorgonia.Node, error) {
	return e.linear(eachPushOp{e.Spec}, e.out, e.Push32, e.Push64, e.pull).Apply(x, v)
}

// linear returns an op that is linear in its second input. transpose computes its derivative.
func (e eachImage) linear(spec any, out tensor.Shape, f32 func(dst, image, v []float32), f64 func(dst, image, v []float64),
	transpose func(x, v *gorgonia.Node) (*gorgonia.Node, error)) *Unitwise {
	return &Unitwise{
		Spec:     spec,
		Out:      out,
		Units:    e.in[0],
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Work:     2 * e.Work * float64(e.in[0]),
		Float32:  eachLinear(e, out, f32),
		Float64:  eachLinear(e, out, f64),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(transpose(in[0], grad))
		},
	}
}

func each[T Float](e eachImage, f func(dst, image []T)) units[T] {
	image, result := volume.Of(e.in[1:]), volume.Of(e.out[1:])
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			f(nth(dst, i, result), nth(in[0], i, image))
		}
	}
}

// eachLinear returns the kernel that applies the linear map f to every image. out is the shape of the output: that of
// the images or that of the results. The second input has the other of these two shapes.
func eachLinear[T Float](e eachImage, out tensor.Shape, f func(dst, image, v []T)) units[T] {
	image, to, other := volume.Of(e.in[1:]), volume.Of(out[1:]), volume.Of(e.out[1:])
	if out.Eq(e.out) {
		other = image
	}
	return func(dst []T, in [][]T, _ []T, first, last int) {
		for i := first; i < last; i++ {
			f(nth(dst, i, to), nth(in[0], i, image), nth(in[1], i, other))
		}
	}
}

// nth returns the i-th slice of size elements of x.
func nth[T Float](x []T, i, size int) []T { return x[i*size : (i+1)*size] }

// Sampler draws the values of a noise input of a layer or a loss. It must be safe for concurrent use.
type Sampler interface {
	// Sample draws the values of dst from r, the random stream of the input.
	Sample(dst []float32, r *rand.Rand)
}
