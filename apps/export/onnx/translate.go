// Package onnx writes programs of package ir as ONNX models: opset 17, float32, with a batch of any size as the first
// axis of the inputs and outputs. [Translate] makes the nodes, [Model.Append] encodes a file, [Read] decodes a file.
//
// Source: the Open Neural Network Exchange specification, https://onnx.ai/onnx/repo-docs/IR.html and
// https://onnx.ai/onnx/operators/.
package onnx

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/wire"
)

// Program is the computation of a model. The inputs and the taps of its module become the inputs and outputs of the
// ONNX graph, under their names.
type Program struct {
	// Module returns the program for a batch of the given number of rows.
	Module func(batch int) (*ir.Module, error)
	// Rows contains the shapes of single rows of taps, by name, if they differ from the shapes in the module, which are
	// flat.
	Rows map[string][]int
}

// The two batch sizes for which a program is made. The length of an axis depends on the batch if it is a multiple of
// the batch size in both programs, and it is fixed if it is the same in both. The sizes are large, because ops may
// choose other algorithms, and thus other programs, for a few rows.
const (
	oneBatch   = 4096
	otherBatch = 4099
)

// Translate returns the ONNX graph of a program. The first axes of inputs and outputs are named "batch". It returns an
// error that names the layer if a value has no ONNX form or depends on the number of rows in a batch.
func Translate(p Program) (*Graph, error) {
	one, err := p.Module(oneBatch)
	if err != nil {
		return nil, err
	}
	other, err := p.Module(otherBatch)
	if err != nil {
		return nil, err
	}
	for _, m := range []*ir.Module{one, other} {
		if err := m.Check(); err != nil {
			return nil, err
		}
		if m.Collective() {
			return nil, errors.New("onnx: the program is one process's part of a training; export the program of the whole batch")
		}
	}
	w := &writer{graph: &Graph{}, module: one, other: map[*ir.Value]*ir.Value{}, refs: map[*ir.Value]ref{}, taken: map[string]bool{}}
	if err := w.pair(other); err != nil {
		return nil, err
	}
	w.open()
	for _, t := range one.Taps {
		w.deliver(t, p.Rows[t.Name])
	}
	return w.graph, w.err
}

// size is the length of an axis: n, or n times the number of rows in the batch if batch is true.
type size struct {
	n     int
	batch bool
}

var single = size{n: 1}

// ref is a value of the ONNX graph. If an axis has length 1 but is longer in the program's value, all elements along
// the axis are equal, and pointwise operators broadcast them.
type ref struct {
	name string
	dims []size
}

// writer makes the nodes of one graph. After the first error it does nothing.
type writer struct {
	graph  *Graph
	module *ir.Module
	other  map[*ir.Value]*ir.Value // maps a value to the same value in the program for the other batch size
	refs   map[*ir.Value]ref
	taken  map[string]bool // names of values
	err    error
}

// pair matches the values of the programs for the two batch sizes.
func (w *writer) pair(other *ir.Module) error {
	a, b := w.module.Values(), other.Values()
	if len(a) != len(b) || len(w.module.Taps) != len(other.Taps) {
		return errors.New("the program depends on the size of the batch")
	}
	for i, v := range a {
		if !alike(v, b[i]) {
			w.fail(v, fmt.Sprintf("%v depends on the size of the batch: such a model has no ONNX form", v.Op))
			return w.err
		}
		w.other[v] = b[i]
	}
	return nil
}

// alike reports whether two values apply the same op to the same args.
func alike(a, b *ir.Value) bool {
	sameArgs := slices.EqualFunc(a.Args, b.Args, func(x, y *ir.Value) bool { return x.ID == y.ID })
	return sameArgs && len(a.Shape) == len(b.Shape) && reflect.DeepEqual(attributes(a.Op), attributes(b.Op))
}

// attributes returns the attributes of an op that distinguish it from others, without its kernel.
func attributes(o ir.Op) any {
	if spec := specOf(o); spec != nil {
		return spec
	}
	if f, ok := o.(ir.Foreign); ok {
		return f.String()
	}
	return o
}

// specOf returns the spec of an op with a kernel, nil for others.
func specOf(o ir.Op) any {
	switch o := o.(type) {
	case ir.Pointwise:
		if e, ok := o.F.(ir.Elementwise); ok {
			return e.Spec()
		}
	case ir.Blockwise:
		return o.Kernel.Spec()
	case ir.Unitwise:
		return o.Kernel.Spec()
	}
	return nil
}

// dims returns the lengths of a value's axes.
func (w *writer) dims(v *ir.Value) []size {
	list := make([]size, len(v.Shape))
	for i, n := range v.Shape {
		list[i] = size{n: n}
		if m := w.other[v].Shape[i]; m != n {
			list[i] = size{n / oneBatch, true}
			if n%oneBatch != 0 || n/oneBatch*otherBatch != m {
				w.fail(v, "has an axis whose length is no multiple of the size of the batch")
			}
		}
	}
	return list
}

// fail records an error, unless there is one already.
func (w *writer) fail(v *ir.Value, problem string) {
	if w.err == nil && v.Layer != "" {
		w.err = fmt.Errorf("%s: %s", v.Layer, problem)
	} else if w.err == nil {
		w.err = errors.New(problem)
	}
}

// open adds the inputs of the program to the graph.
func (w *writer) open() {
	for _, v := range w.module.Values() {
		l, ok := v.Op.(ir.Leaf)
		switch {
		case !ok:
			continue
		case w.taken[v.Name]:
		case l.Kind == ir.InputLeaf:
			w.graph.Inputs = append(w.graph.Inputs, declared(v.Name, w.dims(v)))
		default:
			p := w.module.Parameters[l.Index]
			w.graph.Initializers = append(w.graph.Initializers, floats(p.Name, p.Shape, p.Data))
		}
		w.taken[v.Name] = true
		w.refs[v] = ref{v.Name, w.dims(v)}
	}
}

// deliver adds an output. row is the shape of one of its rows; nil means the shape in the program.
func (w *writer) deliver(t ir.Tap, row []int) {
	if w.taken[t.Name] {
		w.fail(t.Value, fmt.Sprintf("two values have the name %q", t.Name))
		return
	}
	x, dims := w.full(t.Value), w.dims(t.Value)
	if row != nil {
		dims = append([]size{{1, true}}, fixed(row)...)
		x = w.reshape(t.Value, x, dims)
	}
	if w.err != nil {
		return
	}
	last := len(w.graph.Nodes) - 1
	if last < 0 || w.graph.Nodes[last].Outputs[0] != x || w.graph.output(x) {
		w.node(t.Value, "Identity", []string{x})
		last++
	}
	w.rename(last, t)
	w.graph.Outputs = append(w.graph.Outputs, declared(t.Name, dims))
}

// rename gives the output of a node the name of a tap. No other node reads the output yet, except for nodes of later
// taps.
func (w *writer) rename(node int, t ir.Tap) {
	old := w.graph.Nodes[node].Outputs[0]
	w.graph.Nodes[node].Outputs[0] = t.Name
	w.taken[t.Name] = true
	for v, r := range w.refs {
		if r.name == old {
			w.refs[v] = ref{t.Name, r.dims}
		}
	}
}

func (g *Graph) output(name string) bool {
	return slices.ContainsFunc(g.Outputs, func(v Value) bool { return v.Name == name })
}

func fixed(shape []int) []size {
	return lists.Map(shape, func(n int) size { return size{n: n} })
}

// declared returns the description of an input or an output.
func declared(name string, dims []size) Value {
	shape := &Shape{}
	for _, d := range dims {
		switch n := int64(d.n); {
		case d == size{1, true}:
			shape.Dims = append(shape.Dims, Dim{Name: "batch"})
		case d.batch:
			shape.Dims = append(shape.Dims, Dim{Name: fmt.Sprintf("%d batch", n)})
		default:
			shape.Dims = append(shape.Dims, Dim{Length: &n})
		}
	}
	return Value{Name: name, Type: &Type{&TensorType{float32Element, shape}}}
}

// ref returns the ONNX value of v. At its first use it adds v and everything on which v depends.
func (w *writer) ref(v *ir.Value) ref {
	if r, ok := w.refs[v]; ok || w.err != nil {
		return r
	}
	r := w.made(v)
	w.refs[v] = r
	return r
}

// made adds the nodes of one value.
func (w *writer) made(v *ir.Value) ref {
	switch o := v.Op.(type) {
	case ir.Constant:
		return ref{w.number(o.Value, len(v.Shape)), w.dims(v)}
	case ir.Broadcast:
		return w.ref(v.Args[0])
	case ir.Pointwise:
		if f, ok := o.F.(ir.Primitive); ok {
			return w.pointwise(v, f)
		}
	case ir.Reshape:
		return ref{w.reshape(v, w.full(v.Args[0]), w.dims(v)), w.dims(v)}
	case ir.Transpose:
		return ref{w.permuted(v, w.full(v.Args[0]), wide(o.Axes.List())...), w.dims(v)}
	case ir.Product:
		return ref{w.product(v, o), w.dims(v)}
	case ir.Reduction:
		return ref{w.reduction(v, o), w.dims(v)}
	}
	spec := specOf(v.Op)
	if form, ok := forms[reflect.TypeOf(spec)]; ok && spec != nil {
		return ref{form(w, v, spec), w.dims(v)}
	}
	if w.parametric(v) {
		return ref{w.evaluated(v), w.dims(v)}
	}
	w.fail(v, fmt.Sprintf("%s has no ONNX form", nameOf(v.Op, spec)))
	return ref{}
}

// parametric reports whether a value depends on parameters only.
func (w *writer) parametric(v *ir.Value) bool {
	return !slices.ContainsFunc(ir.Sorted([]*ir.Value{v}), func(a *ir.Value) bool {
		l, ok := a.Op.(ir.Leaf)
		return ok && l.Kind == ir.InputLeaf
	})
}

// evaluated computes a value that depends on parameters only, and adds it as a constant.
func (w *writer) evaluated(v *ir.Value) string {
	plan, err := engine.Compile[float32](&ir.Module{Inputs: w.module.Inputs, Parameters: w.module.Parameters, Dtype: w.module.Dtype,
		Taps: []ir.Tap{{Name: "value", Value: v}}}, nil)
	if err == nil {
		defer plan.Close()
		err = plan.Run()
	}
	if err != nil {
		w.fail(v, err.Error())
		return ""
	}
	return w.constant(floats(fmt.Sprintf("constant %d", len(w.graph.Initializers)), v.Shape, plan.Tap(0)))
}

func nameOf(o ir.Op, spec any) string {
	if spec == nil {
		return o.String()
	}
	return "the op " + strings.TrimSuffix(reflect.TypeOf(spec).Name(), "Op")
}

func wide(list []int) []int64 {
	return lists.Map(list, func(n int) int64 { return int64(n) })
}

// product adds a matrix product. It transposes the factors first if necessary.
func (w *writer) product(v *ir.Value, o ir.Product) string {
	factor := func(a *ir.Value, transposed bool) string {
		x := w.full(a)
		if !transposed {
			return x
		}
		axes := lists.Of(len(a.Shape), func(i int) int64 { return int64(i) })
		slices.Reverse(axes[len(axes)-2:])
		return w.permuted(v, x, axes...)
	}
	return w.node(v, "MatMul", []string{factor(v.Args[0], o.TransA), factor(v.Args[1], o.TransB)})
}

func (w *writer) reduction(v *ir.Value, o ir.Reduction) string {
	x, axes := w.full(v.Args[0]), wide(o.Axes.List())
	switch {
	case len(axes) == 0:
		return x
	case o.F == ir.Max:
		return w.node(v, "ReduceMax", []string{x}, IntsOf("axes", axes...), IntOf("keepdims", 0))
	}
	return w.node(v, "ReduceSum", []string{x, w.ints(axes...)}, IntOf("keepdims", 0))
}

// operators maps the primitives that are ONNX operators to their names.
var operators = map[ir.Primitive]string{
	ir.Add: "Add", ir.Sub: "Sub", ir.Mul: "Mul", ir.Div: "Div", ir.Pow: "Pow", ir.Maximum: "Max", ir.Minimum: "Min",
	ir.Abs: "Abs", ir.Sign: "Sign", ir.Ceil: "Ceil", ir.Floor: "Floor", ir.Sin: "Sin", ir.Cos: "Cos", ir.Exp: "Exp", ir.Log: "Log",
	ir.Neg: "Neg", ir.Sqrt: "Sqrt", ir.Reciprocal: "Reciprocal", ir.Tanh: "Tanh", ir.Sigmoid: "Sigmoid", ir.Softplus: "Softplus",
	ir.Copy: "Identity",
}

// comparisons maps primitives to operators whose results are booleans; a Cast converts them to 1 or 0.
var comparisons = map[ir.Primitive]string{
	ir.Lt: "Less", ir.Gt: "Greater", ir.Lte: "LessOrEqual", ir.Gte: "GreaterOrEqual", ir.Eq: "Equal", ir.Ne: "Equal",
}

// pointwise applies a primitive. The operator broadcasts args that are constant along an axis.
func (w *writer) pointwise(v *ir.Value, f ir.Primitive) ref {
	dims := slices.Repeat([]size{single}, len(v.Shape))
	var args []string
	for _, a := range v.Args {
		r := w.ref(a)
		if w.err != nil {
			return ref{}
		}
		args = append(args, r.name)
		for i, d := range r.dims {
			if d != single {
				dims[i] = d
			}
		}
	}
	return ref{w.primitive(v, f, args), dims}
}

func (w *writer) primitive(v *ir.Value, f ir.Primitive, x []string) string {
	if op, ok := operators[f]; ok {
		return w.node(v, op, x)
	}
	if op, ok := comparisons[f]; ok {
		y := w.node(v, op, x)
		if f == ir.Ne {
			y = w.node(v, "Not", []string{y})
		}
		return w.node(v, "Cast", []string{y}, IntOf("to", float32Element))
	}
	number := func(c float64) string { return w.number(c, 0) }
	switch f {
	case ir.Square:
		return w.node(v, "Mul", []string{x[0], x[0]})
	case ir.Cube:
		return w.node(v, "Mul", []string{w.node(v, "Mul", []string{x[0], x[0]}), x[0]})
	case ir.InvSqrt:
		return w.node(v, "Reciprocal", []string{w.node(v, "Sqrt", x)})
	case ir.Log2:
		return w.node(v, "Mul", []string{w.node(v, "Log", x), number(1 / math.Ln2)})
	case ir.Log1p:
		return w.node(v, "Log", []string{w.node(v, "Add", []string{x[0], number(1)})})
	case ir.Expm1:
		return w.node(v, "Sub", []string{w.node(v, "Exp", x), number(1)})
	}
	w.fail(v, fmt.Sprintf("the function %v has no ONNX form", f))
	return ""
}

// The versions of the format and of the operators in files of this package.
const (
	FormatVersion = 8
	OpsetVersion  = 17
)

// The messages of onnx.proto3, with the fields that this package uses. The tags are their numbers.
type (
	// Model is a ModelProto.
	Model struct {
		FormatVersion   int64      `pb:"1"`
		Producer        string     `pb:"2"`
		ProducerVersion string     `pb:"3"`
		Domain          string     `pb:"4"`
		Version         int64      `pb:"5"`
		Doc             string     `pb:"6"`
		Graph           *Graph     `pb:"7"`
		Opsets          []Opset    `pb:"8"`
		Metadata        []Property `pb:"14"`
	}
	// Opset is an OperatorSetIdProto. The domain of the standard operators is "".
	Opset struct {
		Domain  string `pb:"1"`
		Version int64  `pb:"2"`
	}
	// Property is a StringStringEntryProto.
	Property struct {
		Key   string `pb:"1"`
		Value string `pb:"2"`
	}
	// Graph is a GraphProto. Its nodes are in an order in which values are computed before they are read.
	Graph struct {
		Nodes        []Node   `pb:"1"`
		Name         string   `pb:"2"`
		Initializers []Tensor `pb:"5"`
		Doc          string   `pb:"10"`
		Inputs       []Value  `pb:"11"`
		Outputs      []Value  `pb:"12"`
	}
	// Node is a NodeProto: an operator with the names of its inputs and outputs.
	Node struct {
		Inputs     []string    `pb:"1"`
		Outputs    []string    `pb:"2"`
		Name       string      `pb:"3"`
		Op         string      `pb:"4"`
		Attributes []Attribute `pb:"5"`
	}
	// Attribute is an AttributeProto: a setting of an operator. Type determines the field that contains the value.
	Attribute struct {
		Name  string   `pb:"1"`
		Float *float32 `pb:"2"`
		Int   *int64   `pb:"3"`
		Text  []byte   `pb:"4"`
		Graph *Graph   `pb:"6"`
		Ints  []int64  `pb:"8"`
		Type  int64    `pb:"20"`
	}
	// Tensor is a TensorProto: the name, type, shape and little-endian values of a constant.
	Tensor struct {
		Dims []int64 `pb:"1"`
		Type int64   `pb:"2"`
		Name string  `pb:"8"`
		Raw  []byte  `pb:"9"`
	}
	// Value is a ValueInfoProto: the name, type and shape of an input or an output.
	Value struct {
		Name string `pb:"1"`
		Type *Type  `pb:"2"`
	}
	// Type is a TypeProto of a tensor.
	Type struct {
		Tensor *TensorType `pb:"1"`
	}
	// TensorType is a TypeProto.Tensor.
	TensorType struct {
		Element int64  `pb:"1"`
		Shape   *Shape `pb:"2"`
	}
	// Shape is a TensorShapeProto.
	Shape struct {
		Dims []Dim `pb:"1"`
	}
	// Dim is a TensorShapeProto.Dimension: a length, or the name of a length that is known only when the model runs.
	Dim struct {
		Length *int64 `pb:"1"`
		Name   string `pb:"2"`
	}
)

// The types of elements and of attributes.
const (
	float32Element = 1
	int64Element   = 7
	boolElement    = 9

	floatAttribute  = 1
	intAttribute    = 2
	stringAttribute = 3
	graphAttribute  = 5
	intsAttribute   = 7
)

// mostBytes is the size of the largest message that readers of Protocol Buffers accept.
const mostBytes = 1<<31 - 1

// Append appends the encoded file of the model to b. It returns an error if the model has 2 GiB or more, because no
// reader accepts it.
func (m *Model) Append(b []byte) ([]byte, error) {
	if m == nil || m.Graph == nil {
		return b, errors.New("onnx: the model has no graph")
	}
	total := 0
	for _, t := range m.Graph.Initializers {
		total += len(t.Raw)
	}
	if total > mostBytes {
		return b, fmt.Errorf("onnx: the parameters have %d bytes, want at most %d in one file", total, mostBytes)
	}
	return wire.Append(b, m), nil
}
