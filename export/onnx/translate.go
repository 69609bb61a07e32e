package onnx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"tessera/engine/ir"
)

// Program is the computation of a model: the inputs and the taps of Module become those of the ONNX graph, under their names.
type Program struct {
	// Module returns the program for a batch of that many rows.
	Module func(batch int) (*ir.Module, error)
	// Rows holds the shapes of single rows of taps, by name, where they differ from the shapes in the module, which are flat.
	Rows map[string][]int
}

// The batches for which a program is made. A length that is a multiple of both is one per row; a length that is the same is
// fixed. They are large, because ops may choose other algorithms, and so other programs, for a handful of rows.
const (
	oneBatch   = 4096
	otherBatch = 4099
)

// Translate returns the ONNX graph of a program, whose first axes are named "batch". It returns an error that names the layer
// of a value that has no ONNX form, or that depends on the number of rows in a batch.
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

// size is the length of an axis: n, or n times the number of rows in the batch.
type size struct {
	n     int
	batch bool
}

var single = size{n: 1}

// ref is a value of the ONNX graph. Where an axis has the length 1 and that of the program's value is longer, the elements are
// the same all along the axis: pointwise operators broadcast them.
type ref struct {
	name string
	dims []size
}

// writer makes the nodes of one graph. After the first error it does nothing.
type writer struct {
	graph  *Graph
	module *ir.Module
	other  map[*ir.Value]*ir.Value // the same value for the other batch
	refs   map[*ir.Value]ref
	taken  map[string]bool // names of values
	err    error
}

// pair matches the values of the two programs.
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

// attributes is what distinguishes an op from others, without its kernel.
func attributes(o ir.Op) any {
	if spec := specOf(o); spec != nil {
		return spec
	}
	if f, ok := o.(ir.Foreign); ok {
		return f.String()
	}
	return o
}

// specOf is the spec of an op with a kernel, nil for others.
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

// dims are the lengths of a value's axes.
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

// fail records the first error.
func (w *writer) fail(v *ir.Value, problem string) {
	if w.err == nil && v.Layer != "" {
		w.err = fmt.Errorf("%s: %s", v.Layer, problem)
	} else if w.err == nil {
		w.err = errors.New(problem)
	}
}

// open adds the inputs.
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

// deliver adds an output. row is the shape of one of its rows, nil for that of the program.
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

// rename gives the output of a node the name of a tap. No other node reads it yet, except those of later taps.
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

// output reports whether a value is an output of the graph.
func (g *Graph) output(name string) bool {
	return slices.ContainsFunc(g.Outputs, func(v Value) bool { return v.Name == name })
}

func fixed(shape []int) []size {
	dims := make([]size, len(shape))
	for i, n := range shape {
		dims[i] = size{n: n}
	}
	return dims
}

// declared describes an input or an output.
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
