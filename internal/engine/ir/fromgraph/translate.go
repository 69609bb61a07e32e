// Package fromgraph translates Gorgonia's expressions to package ir. It is the only package that distinguishes Gorgonia's
// ops. The types of these ops are not exported, so an op is identified by its Go type and its text. The version in go.mod
// fixes both, and a test compares the tables below with the source of that version. An op that is not in the tables becomes
// an [ir.Foreign] op, which runs its own Do method.
package fromgraph

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

var _ ir.Implementation = (*runner)(nil)

// Dtype converts the type of Gorgonia's nodes to a precision. It returns an error for a type other than float32 and
// float64.
func Dtype(d tensor.Dtype) (ir.Dtype, error) {
	switch d {
	case tensor.Float32:
		return ir.Float32, nil
	case tensor.Float64:
		return ir.Float64, nil
	}
	return 0, fmt.Errorf("fromgraph: got nodes of type %v, want float32 or float64", d)
}

// Translator translates the nodes of one graph to values. Equal nodes become one value.
type Translator struct {
	dtype  tensor.Dtype
	values map[*gorgonia.Node]*ir.Value

	// Layers maps nodes to the layers that their values belong to. Other nodes belong to no layer.
	Layers map[*gorgonia.Node]string
}

// New returns a translator for nodes of the given type.
func New(d tensor.Dtype) *Translator {
	return &Translator{dtype: d, values: map[*gorgonia.Node]*ir.Value{}}
}

// Leaf defines n as an input or a parameter.
func (t *Translator) Leaf(n *gorgonia.Node, l ir.Leaf, name string, shape []int) {
	t.values[n] = &ir.Value{Op: l, Shape: shape, Name: name}
}

// Value returns the value of n. It translates n and all of its inputs on first use.
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

// mark sets the layer of v and of the values below it, down to args.
func mark(v *ir.Value, args []*ir.Value, layer string) {
	if layer == "" || v.Layer != "" || slices.Contains(args, v) {
		return
	}
	v.Layer = layer
	for _, a := range v.Args {
		mark(a, args, layer)
	}
}

// op translates one operation. It copies shapes, because Gorgonia reuses their memory.
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

func described(o ir.Op, args []*ir.Value, shape []int) *ir.Value {
	if _, ok := o.(ir.Reshape); ok {
		return ir.Reshaped(args[0], shape)
	}
	return &ir.Value{Op: o, Args: args, Shape: shape}
}

// known translates Gorgonia's own ops. It returns nil for an unknown op.
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

// native reports whether n and its args are tensors or scalars in the program's precision. If not, the op is translated
// to a foreign op.
func (t *Translator) native(n *gorgonia.Node, args []*ir.Value) bool {
	return n.Dtype() == t.dtype && !slices.ContainsFunc(args, func(a *ir.Value) bool {
		f, ok := a.Op.(ir.Foreign)
		return ok && f.Boxed
	})
}

// constant translates a leaf with a fixed value, which is neither an input nor a parameter.
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

// repeated translates a repeat along axes of length 1 to a broadcast. It returns nil for a repeat of single elements
// along longer axes.
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

// Version is the version of Gorgonia that the tables describe.
const Version = "v0.9.18"

// Class is a class of Gorgonia's own ops.
type Class uint8

// The classes of ops with a counterpart in package ir. All other ops, including those of other packages, are Unknown.
const (
	Unknown   Class = iota
	Constant        // a number or a tensor with fixed values
	Pointwise       // Identity.F, applied to corresponding elements
	MatMul          // matrix × matrix, or batches of them
	MatVec          // matrix × vector
	Outer           // vector × vector to a matrix
	Dot             // vector × vector to a scalar
	Reduction       // Identity.Reducer along Identity.Axes, or along all axes if the list is empty
	Reshape         // the same elements under the node's shape
	Repeat          // elements repeated along axes, to the node's shape
	Size            // length of an axis, a constant: Identity.Size
	Transpose       // axes permuted by Identity.Axes
)

// Identity is the class of a Gorgonia op and its attributes.
type Identity struct {
	Class          Class
	F              ir.Primitive // function of a Pointwise op
	Reducer        ir.Reducer   // sum or maximum of a Reduction
	Batched        bool         // whether a MatMul multiplies batches of matrices
	TransA, TransB bool         // whether a MatMul or MatVec transposes its matrices
	Axes           []int        // axes of a Reduction, or the permutation of a Transpose
	Size           float64      // value of a Size
}

// parsers maps the Go type of an op to the parser of its text. id is valid only if ok is true.
var parsers = map[string]func(text string) (id Identity, ok bool){
	"gorgonia.constantScalar": is(Constant),
	"gorgonia.constantTensor": is(Constant),
	"gorgonia.elemUnaryOp":    func(text string) (Identity, bool) { return pointwise(unaries, text) },
	"gorgonia.elemBinOp": func(text string) (Identity, bool) {
		sign, _, _ := strings.Cut(text, " ") // the text ends in "true" if the comparison returns numbers
		return pointwise(binaries, sign)
	},
	"gorgonia.maxBetween":  func(string) (Identity, bool) { return Identity{Class: Pointwise, F: ir.Maximum}, true },
	"gorgonia.minBetween":  func(string) (Identity, bool) { return Identity{Class: Pointwise, F: ir.Minimum}, true },
	"gorgonia.linAlgBinOp": linearAlgebra,
	"gorgonia.sumOp":       func(text string) (Identity, bool) { return reduction(ir.Sum, text, "Σ") },
	"gorgonia.maxOp":       func(text string) (Identity, bool) { return reduction(ir.Max, text, "MaxAlong") },
	"gorgonia.reshapeOp":   is(Reshape),
	"gorgonia.repeatOp":    is(Repeat),
	"gorgonia.sizeOp": func(text string) (Identity, bool) {
		number, known := strings.CutPrefix(text, "SizeOf=")
		size, err := strconv.ParseFloat(number, 64)
		return Identity{Class: Size, Size: size}, known && err == nil
	},
	"gorgonia.transposeOp": func(text string) (Identity, bool) {
		axes, ok := list(text, "Aᵀ{", ", ", "}")
		return Identity{Class: Transpose, Axes: axes}, ok
	},
}

// unaries and binaries map the texts of Gorgonia's elementwise functions to primitives. The order is Gorgonia's.
var unaries = map[string]ir.Primitive{
	"abs": ir.Abs, "sign": ir.Sign, "ceil": ir.Ceil, "floor": ir.Floor,
	"sin": ir.Sin, "cos": ir.Cos, "exp": ir.Exp,
	"ln": ir.Log, "log2": ir.Log2, "neg": ir.Neg, "square": ir.Square, "sqrt": ir.Sqrt,
	"inv": ir.Reciprocal, "invSqrt": ir.InvSqrt,
	"cube": ir.Cube, "tanh": ir.Tanh, "sigmoid": ir.Sigmoid,
	"log1p": ir.Log1p, "expm1": ir.Expm1, "softplus": ir.Softplus,
}

var binaries = map[string]ir.Primitive{
	"+": ir.Add, "-": ir.Sub, "⊙": ir.Mul, "÷": ir.Div, "^": ir.Pow,
	"<": ir.Lt, ">": ir.Gt, "<=": ir.Lte, ">=": ir.Gte, "==": ir.Eq, "!=": ir.Ne,
}

// products maps the texts of Gorgonia's products, without the marks of transposed factors, to identities.
var products = map[string]Identity{
	"A × B":   {Class: MatMul},
	"A ××× B": {Class: MatMul, Batched: true},
	"A × b":   {Class: MatVec},
	"a ⊗ b":   {Class: Outer},
	"a ⋅ b":   {Class: Dot},
}

// Identify returns the identity of a Gorgonia op.
func Identify(op gorgonia.Op) Identity {
	if op == nil {
		return Identity{}
	}
	parse, ok := parsers[strings.TrimPrefix(fmt.Sprintf("%T", op), "*")]
	if !ok {
		return Identity{}
	}
	if id, ok := parse(op.String()); ok {
		return id
	}
	return Identity{}
}

// is returns a parser that gives the class c to every text.
func is(c Class) func(string) (Identity, bool) {
	return func(string) (Identity, bool) { return Identity{Class: c}, true }
}

func pointwise(table map[string]ir.Primitive, text string) (Identity, bool) {
	f, ok := table[text]
	return Identity{Class: Pointwise, F: f}, ok
}

func reduction(f ir.Reducer, text, prefix string) (Identity, bool) {
	axes, ok := list(text, prefix+"[", " ", "]")
	return Identity{Class: Reduction, Reducer: f, Axes: axes}, ok
}

func linearAlgebra(text string) (Identity, bool) {
	const transposed = "ᵀ"
	id, ok := products[strings.ReplaceAll(text, transposed, "")]
	if id.Class == MatMul || id.Class == MatVec {
		a, _, _ := strings.Cut(text, " ")
		id.TransA = strings.HasSuffix(a, transposed)
		id.TransB = strings.HasSuffix(text, transposed) && id.Class == MatMul
	}
	return id, ok
}

// list parses the numbers in text between open and end, which are separated by separator.
func list(text, open, separator, end string) (numbers []int, ok bool) {
	inside, opens := strings.CutPrefix(text, open)
	inside, ends := strings.CutSuffix(inside, end)
	if !opens || !ends {
		return nil, false
	}
	if inside == "" {
		return nil, true
	}
	for word := range strings.SplitSeq(inside, separator) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// Children lists the operands of a node in order; an operand that is used twice is listed twice.
func Children(n *gorgonia.Node) (list gorgonia.Nodes) {
	for it := n.Graph().From(n.ID()); it.Next(); {
		list = append(list, it.Node().(*gorgonia.Node))
	}
	return list
}

// foreign returns a value whose op only Gorgonia implements, or the value of a leaf in another precision.
func (t *Translator) foreign(n *gorgonia.Node, args []*ir.Value, shape []int) *ir.Value {
	boxed := n.Dtype() != t.dtype
	return &ir.Value{Op: ir.Foreign{Run: &runner{n, boxed, t.dtype}, Boxed: boxed}, Args: args, Shape: shape}
}

// runner runs the op of one node.
type runner struct {
	node  *gorgonia.Node
	boxed bool
	dtype tensor.Dtype
}

func (r *runner) String() string {
	if r.node.Op() == nil {
		return r.node.Name()
	}
	return r.node.Op().String()
}

func (r *runner) Do(in []ir.Tensor) (out ir.Tensor, err error) {
	value := r.node.Value()
	if r.node.Op() != nil {
		args := lists.Map(in, wrapped)
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

// wrapped converts a tensor to the type that Gorgonia's ops accept.
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

// Elements returns the numbers of a value in row-major order. It copies them if the value stores them in another order.
func Elements[T ir.Float](v gorgonia.Value) ([]T, error) {
	if d, ok := v.(*tensor.Dense); ok && !inOrder(d) {
		v = d.Materialize()
	}
	return Backing[T](v)
}

// Backing returns the memory of a value in row-major order. It returns an error for a value that stores its numbers in
// another order.
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

// inOrder reports whether a tensor stores its elements in row-major order, without gaps.
func inOrder(d *tensor.Dense) bool { return !d.RequiresIterator() && d.DataOrder().IsRowMajor() }
