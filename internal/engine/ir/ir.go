// Package ir is the typed representation of a program: the computation of a model, independent of the library that
// declared it. Package engine compiles programs; exporters and other back ends can read them.
// [tessera/engine/ir/fromgraph] translates a Gorgonia graph to a program. A program can also be built with the
// constructors of this package. [Module.Check] verifies it.
//
// A [Module] lists the inputs, the parameters and the wanted values: taps, gradients and updates. Each [Value] has the
// [Op] that computes it and the args that the op reads. Values form a directed acyclic graph. [Module.Values] lists
// them in an order in which args come first.
//
// Every value is a row-major tensor in the precision of the module, with the batch (if any) as its first axis. An empty
// shape is a scalar. The only exception is the result of a [Foreign] op that is marked Boxed.
//
// The ops, by a type switch on [Value].Op:
//
//	Leaf        filled from outside: an input or a parameter
//	Constant    one number
//	Reshape     the same elements under another shape
//	Broadcast   axes of length 1, repeated
//	Pointwise   a function of corresponding elements: a Primitive, or an Elementwise kernel
//	Reduction   the sum or the maximum over some axes
//	Product     a matrix product, batched where there are more than two axes
//	Transpose   a permutation of the axes
//	Blockwise   an op with a kernel that computes blocks of elements, such as the rows of a softmax
//	Unitwise    an op with a kernel that computes units, equally long slices of its output, such as the images of a convolution
//	AllReduce   the sum or the maximum over the processes that run the program together
//	AllGather   the images of the batch, collected from all processes
//	Foreign     an op that is known only by its implementation
//
// [Kernel].Spec describes Elementwise, Blockwise and Unitwise ops. It is a struct whose type identifies the function
// and whose fields are the attributes (see the ...Op types of package ops).
package ir

import (
	"fmt"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/volume"
)

// Dtype is the precision of a module.
type Dtype uint8

// The precisions.
const (
	Float32 Dtype = iota
	Float64
)

func (d Dtype) String() string {
	if d == Float64 {
		return "float64"
	}
	return "float32"
}

// Float is the Go type of a number of a program.
type Float interface{ float32 | float64 }

// DtypeOf returns the precision of the type T.
func DtypeOf[T Float]() Dtype {
	if _, ok := any(T(0)).(float64); ok {
		return Float64
	}
	return Float32
}

// Value is one tensor of a program.
type Value struct {
	ID    int // position in the list that Module.Values last returned
	Op    Op
	Args  []*Value
	Shape []int
	Name  string // name of an input or parameter; empty for other values
	Layer string // path and kind of the layer, "encoder.0 (dense)"; empty for leaves and for values outside layers
}

// Module is a program.
type Module struct {
	Dtype      Dtype
	Batch      int // images per run; 0 for a program without a batch
	Inputs     []Input
	Parameters []Parameter
	Taps       []Tap
	Gradients  []Gradient
	Updates    []Update
}

// Input is a tensor that the caller fills before every run. [Leaf] refers to it by its index.
type Input struct {
	Name  string
	Shape []int // batch included
}

// Parameter is a tensor of the model. [Leaf] refers to it by its index.
type Parameter struct {
	Name  string // path of the parameter: "encoder.0.weight"
	Shape []int
	Data  []float32 // row-major; shared with the model, not a copy
}

// Tap is a value that can be read after a run.
type Tap struct {
	Name  string // "loss", "loss.mse", "code", "output", ...
	Value *Value
}

// Gradient is the derivative of the loss with respect to a parameter.
type Gradient struct {
	Parameter int // index in Module.Parameters
	Value     *Value
}

// Update is a value that is assigned to a parameter after the run (a running average).
type Update struct {
	Parameter int // index in Module.Parameters
	Value     *Value
}

// Wanted lists the values of the taps, the gradients and the updates, in this order.
func (m *Module) Wanted() []*Value {
	list := lists.Map(m.Taps, func(t Tap) *Value { return t.Value })
	for _, g := range m.Gradients {
		list = append(list, g.Value)
	}
	for _, u := range m.Updates {
		list = append(list, u.Value)
	}
	return list
}

// Values returns every value on which the wanted values depend; see [Sorted].
func (m *Module) Values() []*Value { return Sorted(m.Wanted()) }

// Sorted returns every value that the wanted values depend on, including these, with args before the values that read
// them. It sets the IDs to the positions in this list.
func Sorted(wanted []*Value) []*Value {
	var list []*Value
	seen := map[*Value]bool{}
	var visit func(v *Value)
	visit = func(v *Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, a := range v.Args {
			visit(a)
		}
		v.ID = len(list)
		list = append(list, v)
	}
	for _, w := range wanted {
		visit(w)
	}
	return list
}

// Clone returns a module with copies of the values, so that passes can change them. Parameters share their data with m.
func (m *Module) Clone() *Module {
	copied := map[*Value]*Value{}
	for _, v := range m.Values() {
		c := *v
		c.Args = make([]*Value, len(v.Args))
		for i, a := range v.Args {
			c.Args[i] = copied[a]
		}
		copied[v] = &c
	}
	clone := *m
	clone.Taps, clone.Gradients, clone.Updates = slices.Clone(m.Taps), slices.Clone(m.Gradients), slices.Clone(m.Updates)
	for i := range clone.Taps {
		clone.Taps[i].Value = copied[m.Taps[i].Value]
	}
	for i := range clone.Gradients {
		clone.Gradients[i].Value = copied[m.Gradients[i].Value]
	}
	for i := range clone.Updates {
		clone.Updates[i].Value = copied[m.Updates[i].Value]
	}
	return &clone
}

// String lists the values, one per line: "%4 A×B[32 100] %0 %1".
func (m *Module) String() string { return Text(m.Values()) }

// Text lists values, one per line, by their IDs.
func Text(values []*Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%%%d %v%v", v.ID, v.Op, v.Shape)
		if v.Name != "" {
			fmt.Fprintf(&b, " %s", v.Name)
		}
		for _, a := range v.Args {
			fmt.Fprintf(&b, " %%%d", a.ID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Point returns a pointwise value of the given shape. An arg of the same size is reshaped; other args are broadcast by
// [Broadcasted].
func Point(f Function, shape []int, args ...*Value) *Value {
	v := &Value{Op: Pointwise{f}, Shape: shape}
	for _, a := range args {
		if !slices.Equal(a.Shape, shape) {
			if volume.Of(a.Shape) == volume.Of(shape) {
				a = Reshaped(a, shape)
			} else {
				a = Broadcasted(a, shape)
			}
		}
		v.Args = append(v.Args, a)
	}
	return v
}

// Reshaped returns a with another shape of the same size.
func Reshaped(a *Value, shape []int) *Value {
	if slices.Equal(a.Shape, shape) {
		return a
	}
	return &Value{Op: Reshape{}, Args: []*Value{a}, Shape: shape}
}

// Broadcasted returns a, repeated to the given shape. Either a is a single number, or it has the same number of axes as
// shape, each of the same length or of length 1.
func Broadcasted(a *Value, shape []int) *Value {
	if len(a.Shape) != len(shape) {
		a = Reshaped(a, slices.Repeat([]int{1}, len(shape)))
	}
	return &Value{Op: Broadcast{}, Args: []*Value{a}, Shape: shape}
}

// Reduce combines the elements of a along axes, or all elements if there are no axes. The result is reshaped to shape.
func Reduce(f Reducer, a *Value, shape []int, axes ...int) *Value {
	if len(axes) == 0 {
		for i := range a.Shape {
			axes = append(axes, i)
		}
	}
	axes = slices.Sorted(slices.Values(axes))
	axes = slices.Compact(axes)
	return Reshaped(&Value{Op: Reduction{f, NewAxes(axes...)}, Args: []*Value{a}, Shape: without(a.Shape, axes)}, shape)
}

// without returns shape without the given axes.
func without(shape, axes []int) (rest []int) {
	for i, d := range shape {
		if !slices.Contains(axes, i) {
			rest = append(rest, d)
		}
	}
	return rest
}

// Uniform returns a value of the given shape with c in every element.
func Uniform(c float64, shape []int) *Value {
	v := &Value{Op: Constant{c}}
	if len(shape) == 0 {
		return v
	}
	v.Shape = slices.Repeat([]int{1}, len(shape))
	if slices.Equal(v.Shape, shape) {
		return v
	}
	return &Value{Op: Broadcast{}, Args: []*Value{v}, Shape: shape}
}

// ConstantOf returns the number in every element of v. ok is false unless v is a constant or a broadcast or reshape of
// one.
func ConstantOf(v *Value) (c float64, ok bool) {
	for {
		switch o := v.Op.(type) {
		case Constant:
			return o.Value, true
		case Broadcast, Reshape:
			v = v.Args[0]
		default:
			return 0, false
		}
	}
}

// InBlocks returns the value computed by a kernel with independent blocks, for args of the given shape. It is a
// [Pointwise] value if a block is one element, otherwise a [Blockwise] value.
func InBlocks(k Blocks, shape []int, args ...*Value) *Value {
	block := k.Block(shape)
	if block == 1 {
		return Point(Elementwise{k}, shape, args...)
	}
	return &Value{Op: Blockwise{k, block}, Args: args, Shape: shape}
}

// InUnits returns the value computed by a kernel with units. If the kernel can prepare its last arg ([Units.Prepared]),
// the prepared arg becomes a separate value.
func InUnits(k Units, shape []int, args ...*Value) *Value {
	if q, prepared := k.Prepared(); q != nil {
		last := len(args) - 1
		args = append(slices.Clone(args[:last]), &Value{Op: Unitwise{q}, Args: args[last:], Shape: prepared})
	}
	return &Value{Op: Unitwise{k}, Args: args, Shape: shape}
}

// Program is the source of a module: a [Module] itself, or an expression graph that can be translated to one.
type Program interface {
	Module() (*Module, error)
}

// Module implements [Program]. It returns m.
func (m *Module) Module() (*Module, error) { return m, nil }

// Runner runs one program. It is not safe for concurrent use. Its indices are those of the program's inputs, taps and parameters.
type Runner[T Float] interface {
	// Bind makes the next runs read input i from values, a row-major tensor that includes the batch. values must not
	// change during a run.
	Bind(i int, values []T) error
	// Run computes every tap, gradient and update.
	Run() error
	// Tap returns the values of tap i. They are valid until the next Run.
	Tap(i int) []T
	// Parameter returns the values that the program reads as parameter i. In float32 they are the parameter's data; in
	// float64 they are a copy, which the caller may change.
	Parameter(i int) []T
	// Gradient returns the gradient of the loss with respect to parameter i, nil if the parameter has none. It is valid
	// until the next Run.
	Gradient(i int) []T
	// Close frees the runner's memory outside the Go heap and ends its goroutines.
	Close() error
}

// Touching is implemented by runners that know which rows of a gradient may differ from 0.
type Touching interface {
	// Touched returns lists of the rows of the gradient with respect to parameter i, a matrix, that may differ from 0 after
	// the last run, each row once; nil if they are not known.
	Touched(i int) [][]int32
}

// ParameterValues returns data itself for float32, and a converted copy for float64; see [Runner].
func ParameterValues[T Float](data []float32) []T {
	if same, ok := any(data).([]T); ok {
		return same
	}
	return lists.Map(data, func(v float32) T { return T(v) })
}

// Backend compiles programs for training and inference in float32.
type Backend interface {
	// Name identifies the back end in options and records.
	Name() string
	// Compile prepares a program. It returns an error for a kind of [Program] that the back end cannot read.
	Compile(p Program) (Runner[float32], error)
	// WithGroup returns a back end that runs every program together with the other processes of a group, each process on its
	// images of the batch. It returns an error if the back end supports only one process.
	WithGroup(g collective.Group) (Backend, error)
}
