package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/engine/ir"
)

// node adds an operator that belongs to v's layer, and returns the name of its output.
func (w *writer) node(v *ir.Value, op string, inputs []string, attributes ...Attribute) string {
	name := op
	if path, _, _ := strings.Cut(v.Layer, " "); path != "" {
		name = path + "/" + op
	}
	name = w.fresh(name)
	w.graph.Nodes = append(w.graph.Nodes, Node{Inputs: inputs, Outputs: []string{name}, Name: name, Op: op, Attributes: attributes})
	return name
}

// fresh returns a name that no value has: the given one, or that with a number.
func (w *writer) fresh(name string) string {
	free := name
	for i := 2; w.taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	w.taken[free] = true
	return free
}

// constant adds an initializer, or returns the equal one that was added before.
func (w *writer) constant(t Tensor) string {
	for _, have := range w.graph.Initializers {
		if have.Name == t.Name {
			return t.Name
		}
	}
	w.taken[t.Name] = true
	w.graph.Initializers = append(w.graph.Initializers, t)
	return t.Name
}

// number is one number as a tensor with that many axes.
func (w *writer) number(c float64, axes int) string {
	t := floats("", slices.Repeat([]int{1}, axes), []float32{float32(c)})
	t.Name = fmt.Sprintf("number[%v]%s", float32(c), strings.Repeat("x1", axes))
	return w.constant(t)
}

// ints is a list of whole numbers.
func (w *writer) ints(list ...int64) string {
	t := Tensor{Dims: []int64{int64(len(list))}, Type: int64Element, Name: "ints" + strings.ReplaceAll(fmt.Sprint(list), " ", ",")}
	for _, n := range list {
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(n))
	}
	return w.constant(t)
}

// reshape gives x other axes, of which at most one depends on the batch.
func (w *writer) reshape(v *ir.Value, x string, dims []size) string {
	list, free := make([]int64, len(dims)), 0
	for i, d := range dims {
		if list[i] = int64(d.n); d.batch {
			list[i] = -1
			free++
		}
	}
	if free > 1 {
		w.fail(v, "two axes depend on the size of the batch: such a value has no ONNX form")
	}
	return w.shaped(v, x, list...)
}

// shaped is reshape by numbers, -1 for the axis that takes the rest.
func (w *writer) shaped(v *ir.Value, x string, dims ...int64) string {
	return w.node(v, "Reshape", []string{x, w.ints(dims...)})
}

// permuted transposes the axes of x.
func (w *writer) permuted(v *ir.Value, x string, axes ...int64) string {
	return w.node(v, "Transpose", []string{x}, intsOf("perm", axes...))
}

// full is the value v with all of its elements.
func (w *writer) full(v *ir.Value) string {
	r := w.ref(v)
	if w.err != nil || slices.Equal(r.dims, w.dims(v)) {
		return r.name
	}
	var parts []string // of the shape
	for i, d := range w.dims(v) {
		switch {
		case d == r.dims[i]:
			parts = append(parts, w.ints(1)) // Expand keeps the length
		case d.batch:
			n := w.node(v, "Shape", []string{w.module.Inputs[0].Name}, intOf("start", 0), intOf("end", 1))
			parts = append(parts, w.node(v, "Mul", []string{n, w.ints(int64(d.n))}))
		default:
			parts = append(parts, w.ints(int64(d.n)))
		}
	}
	shape := w.node(v, "Concat", parts, intOf("axis", 0))
	r = ref{w.node(v, "Expand", []string{r.name, shape}), w.dims(v)}
	w.refs[v] = r
	return r.name
}

// floats is a tensor of that name and shape.
func floats(name string, shape []int, values []float32) Tensor {
	t := Tensor{Type: float32Element, Name: name, Raw: make([]byte, 0, 4*len(values))}
	for _, n := range shape {
		t.Dims = append(t.Dims, int64(n))
	}
	for _, x := range values {
		t.Raw = binary.LittleEndian.AppendUint32(t.Raw, math.Float32bits(x))
	}
	return t
}

func intOf(name string, n int) Attribute {
	wide := int64(n)
	return Attribute{Name: name, Int: &wide, Type: intAttribute}
}

func intsOf(name string, list ...int64) Attribute {
	return Attribute{Name: name, Ints: list, Type: intsAttribute}
}

func floatOf(name string, x float64) Attribute {
	narrow := float32(x)
	return Attribute{Name: name, Float: &narrow, Type: floatAttribute}
}
