package onnx

import (
	"fmt"
	"math"
	"reflect"

	"tessera/engine/ir"
	"tessera/ops"
)

// form adds the nodes of a value whose op has that spec, and returns the name of the last one's output.
type form = func(w *writer, v *ir.Value, spec any) string

// forms holds the ops of package ops that layers use, by the types of their specs.
var forms = map[reflect.Type]form{}

// define adds the form of ops with the spec S.
func define[S any](f func(w *writer, v *ir.Value, o S) string) {
	forms[reflect.TypeFor[S]()] = func(w *writer, v *ir.Value, spec any) string { return f(w, v, spec.(S)) }
}

func init() {
	define(ramp)
	define(clip)
	define(topK)
	define(standardise)
	define(maxPlus)
	define(scores)
	define(mix)
	define(func(w *writer, v *ir.Value, o ops.EluOp) string {
		return w.node(v, "Elu", w.first(v), floatOf("alpha", o.Alpha))
	})
	define(func(w *writer, v *ir.Value, _ ops.NormalCDFOp) string { // (1 + erf(x / sqrt 2)) / 2
		erf := w.node(v, "Erf", []string{w.node(v, "Mul", append(w.first(v), w.number(math.Sqrt2/2, 0)))})
		return w.node(v, "Mul", []string{w.node(v, "Add", []string{erf, w.number(1, 0)}), w.number(0.5, 0)})
	})
	define(func(w *writer, v *ir.Value, _ ops.JoinOp) string {
		return w.node(v, "Concat", []string{w.full(v.Args[0]), w.full(v.Args[1])}, intOf("axis", 1))
	})
	define(func(w *writer, v *ir.Value, o ops.ColumnsOp) string {
		from, to := w.ints(int64(o.From)), w.ints(int64(o.From+o.Count))
		return w.node(v, "Slice", append(w.first(v), from, to, w.ints(1)))
	})
	define(func(w *writer, v *ir.Value, _ ops.SoftplusOp) string { return w.node(v, "Softplus", w.first(v)) })
	define(func(w *writer, v *ir.Value, _ ops.SoftmaxOp) string {
		return w.node(v, "Softmax", w.first(v), intOf("axis", -1))
	})
	define(func(w *writer, v *ir.Value, _ ops.LogSoftmaxOp) string {
		return w.node(v, "LogSoftmax", w.first(v), intOf("axis", -1))
	})
	define(func(w *writer, v *ir.Value, o ops.TileOp) string {
		return w.node(v, "Tile", append(w.first(v), w.ints(int64(o.Times))))
	})
	define(func(w *writer, v *ir.Value, o ops.FoldOp) string {
		x := w.shaped(v, w.full(v.Args[0]), int64(o.Times), -1)
		return w.node(v, "ReduceSum", []string{x, w.ints(0)}, intOf("keepdims", 0))
	})
}

// first is the first arg of a value, as the inputs of a node.
func (w *writer) first(v *ir.Value) []string { return []string{w.full(v.Args[0])} }

// ramp is above max(x, 0) + below min(x, 0).
func ramp(w *writer, v *ir.Value, o ops.RampOp) string {
	x := w.first(v)
	switch {
	case o.Above == 1 && o.Below == 0:
		return w.node(v, "Relu", x)
	case o.Above == 1:
		return w.node(v, "LeakyRelu", x, floatOf("alpha", o.Below))
	}
	zero := w.number(0, 0)
	above := w.node(v, "Mul", []string{w.node(v, "Max", []string{x[0], zero}), w.number(o.Above, 0)})
	below := w.node(v, "Mul", []string{w.node(v, "Min", []string{x[0], zero}), w.number(o.Below, 0)})
	return w.node(v, "Add", []string{above, below})
}

func clip(w *writer, v *ir.Value, o ops.ClipOp) string {
	return w.node(v, "Clip", append(w.first(v), w.number(o.Low, 0), w.number(o.High, 0)))
}

// topK writes the largest values of each row over zeros. Of equal values both keep the first ones.
func topK(w *writer, v *ir.Value, o ops.TopKOp) string {
	x := w.full(v.Args[0])
	row := v.Shape[len(v.Shape)-1]
	if o.K >= row {
		return w.node(v, "Identity", []string{x})
	}
	values := w.node(v, "TopK", []string{x, w.ints(int64(o.K))}, intOf("axis", -1))
	indices := w.fresh(values + "_indices")
	last := &w.graph.Nodes[len(w.graph.Nodes)-1]
	last.Outputs = append(last.Outputs, indices)
	zeros := w.node(v, "ConstantOfShape", []string{w.node(v, "Shape", []string{x})}) // of float32 by default
	return w.node(v, "ScatterElements", []string{zeros, indices, values}, intOf("axis", -1))
}

// standardise works on (blocks, places, channels).
func standardise(w *writer, v *ir.Value, o ops.StandardiseOp) string {
	mean := func(x string) string {
		return w.node(v, "ReduceMean", []string{x}, intsOf("axes", 1), intOf("keepdims", 1))
	}
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Places), int64(o.Channels))
	centred := w.node(v, "Sub", []string{x, mean(x)})
	variance := mean(w.node(v, "Mul", []string{centred, centred}))
	deviation := w.node(v, "Sqrt", []string{w.node(v, "Add", []string{variance, w.number(o.Epsilon, 0)})})
	return w.reshape(v, w.node(v, "Div", []string{centred, deviation}), w.dims(v))
}

// maxPlus adds codes (batch, units, 1) to atoms (units, n) and takes the maximum over the units.
func maxPlus(w *writer, v *ir.Value, _ ops.MaxPlusOp) string {
	h := w.shaped(v, w.full(v.Args[0]), -1, int64(v.Args[1].Shape[0]), 1)
	sum := w.node(v, "Add", []string{h, w.full(v.Args[1])})
	return w.node(v, "ReduceMax", []string{sum}, intsOf("axes", 1), intOf("keepdims", 0))
}

// heads is a sequence (batch, tokens, features) as (batch, heads, tokens, features of a head), with other axes after that.
func (w *writer) heads(v *ir.Value, x string, a ops.Attention, axes ...int64) string {
	x = w.shaped(v, x, -1, int64(a.Tokens), int64(a.Heads), int64(a.Features/a.Heads))
	return w.permuted(v, x, axes...)
}

func scores(w *writer, v *ir.Value, o ops.AttentionScoresOp) string {
	a := ops.Attention(o)
	x := w.heads(v, w.full(v.Args[0]), a, 0, 2, 1, 3)
	return w.node(v, "MatMul", []string{x, w.heads(v, w.full(v.Args[1]), a, 0, 2, 3, 1)})
}

func mix(w *writer, v *ir.Value, o ops.AttentionMixOp) string {
	weights := w.full(v.Args[0])
	if o.Transposed {
		weights = w.permuted(v, weights, 0, 1, 3, 2)
	}
	mixed := w.node(v, "MatMul", []string{weights, w.heads(v, w.full(v.Args[1]), o.Attention, 0, 2, 1, 3)})
	return w.reshape(v, w.permuted(v, mixed, 0, 2, 1, 3), w.dims(v))
}

// noForm is the error of settings of an op for which ONNX has no operator.
func (w *writer) noForm(v *ir.Value, spec any) string {
	w.fail(v, fmt.Sprintf("%s has no ONNX form with these settings: %+v", nameOf(v.Op, spec), spec))
	return ""
}
