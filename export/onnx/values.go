package onnx

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"tessera/engine/ir"
)

// ref returns the value v, which it adds with everything that it needs at its first use.
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
	w.fail(v, fmt.Sprintf("%s has no ONNX form", nameOf(v.Op, spec)))
	return ref{}
}

// nameOf is the name of an op in an error.
func nameOf(o ir.Op, spec any) string {
	if spec == nil {
		return o.String()
	}
	return "the op " + strings.TrimSuffix(reflect.TypeOf(spec).Name(), "Op")
}

func wide(list []int) []int64 {
	all := make([]int64, len(list))
	for i, n := range list {
		all[i] = int64(n)
	}
	return all
}

// product is a matrix product; factors are transposed first.
func (w *writer) product(v *ir.Value, o ir.Product) string {
	factor := func(a *ir.Value, transposed bool) string {
		x := w.full(a)
		if !transposed {
			return x
		}
		axes := make([]int64, len(a.Shape))
		for i := range axes {
			axes[i] = int64(i)
		}
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
		return w.node(v, "ReduceMax", []string{x}, intsOf("axes", axes...), intOf("keepdims", 0))
	}
	return w.node(v, "ReduceSum", []string{x, w.ints(axes...)}, intOf("keepdims", 0))
}

// operators are the primitives that ONNX has.
var operators = map[ir.Primitive]string{
	ir.Add: "Add", ir.Sub: "Sub", ir.Mul: "Mul", ir.Div: "Div", ir.Pow: "Pow", ir.Maximum: "Max", ir.Minimum: "Min",
	ir.Abs: "Abs", ir.Sign: "Sign", ir.Ceil: "Ceil", ir.Floor: "Floor", ir.Sin: "Sin", ir.Cos: "Cos", ir.Exp: "Exp", ir.Log: "Log",
	ir.Neg: "Neg", ir.Sqrt: "Sqrt", ir.Reciprocal: "Reciprocal", ir.Tanh: "Tanh", ir.Sigmoid: "Sigmoid", ir.Softplus: "Softplus",
	ir.Copy: "Identity",
}

// comparisons give booleans in ONNX, and 1 or 0 after a Cast.
var comparisons = map[ir.Primitive]string{
	ir.Lt: "Less", ir.Gt: "Greater", ir.Lte: "LessOrEqual", ir.Gte: "GreaterOrEqual", ir.Eq: "Equal", ir.Ne: "Equal",
}

// pointwise applies a primitive; args that are constant along an axis are broadcast by the operator.
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
		return w.node(v, "Cast", []string{y}, intOf("to", float32Element))
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
