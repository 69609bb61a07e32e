package onnx

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"tessera/data/morph"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/layers"
)

// form adds the nodes for a value whose op has the given spec, and returns the name of the last node's output.
type form = func(w *writer, v *ir.Value, spec any) string

// forms contains the forms of the ops of package ops that layers use, by the types of their specs.
var forms = map[reflect.Type]form{}

// define registers the form of ops with the spec S.
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
		return w.node(v, "Elu", w.first(v), FloatOf("alpha", o.Alpha))
	})
	define(func(w *writer, v *ir.Value, _ ops.NormalCDFOp) string { // computes (1 + erf(x / sqrt 2)) / 2
		erf := w.node(v, "Erf", []string{w.node(v, "Mul", append(w.first(v), w.number(math.Sqrt2/2, 0)))})
		return w.node(v, "Mul", []string{w.node(v, "Add", []string{erf, w.number(1, 0)}), w.number(0.5, 0)})
	})
	define(func(w *writer, v *ir.Value, _ ops.JoinOp) string {
		return w.node(v, "Concat", []string{w.full(v.Args[0]), w.full(v.Args[1])}, IntOf("axis", 1))
	})
	define(func(w *writer, v *ir.Value, o ops.WidenOp) string {
		pads := w.ints(0, int64(o.From), 0, int64(o.Of-o.From-v.Args[0].Shape[1]))
		return w.node(v, "Pad", []string{w.full(v.Args[0]), pads})
	})
	define(func(w *writer, v *ir.Value, o ops.ColumnsOp) string {
		from, to := w.ints(int64(o.From)), w.ints(int64(o.From+o.Count))
		return w.node(v, "Slice", append(w.first(v), from, to, w.ints(1)))
	})
	define(func(w *writer, v *ir.Value, o ops.PrefixOp) string {
		last := int64(len(v.Shape) - 1)
		kept := w.node(v, "Slice", append(w.first(v), w.ints(0), w.ints(int64(o.Count)), w.ints(last)))
		pads := make([]int64, 2*len(v.Shape))
		pads[len(pads)-1] = int64(v.Shape[last] - min(o.Count, v.Shape[last]))
		return w.node(v, "Pad", []string{kept, w.ints(pads...)})
	})
	define(func(w *writer, v *ir.Value, _ ops.StepOp) string {
		return w.node(v, "Cast", []string{w.node(v, "Greater", append(w.first(v), w.number(0, 0)))}, IntOf("to", float32Element))
	})
	define(func(w *writer, v *ir.Value, _ ops.GateOp) string { // computes x where z > 0, 0 elsewhere
		open := w.node(v, "Greater", []string{w.full(v.Args[0]), w.number(0, 0)})
		return w.node(v, "Where", []string{open, w.full(v.Args[1]), w.number(0, 0)})
	})
	define(func(w *writer, v *ir.Value, _ ops.GatherOp) string {
		indices := w.node(v, "Cast", []string{w.full(v.Args[1])}, IntOf("to", int64Element))
		return w.node(v, "Gather", []string{w.full(v.Args[0]), indices}, IntOf("axis", 0))
	})
	define(func(w *writer, v *ir.Value, _ ops.GatherSumOp) string { // an index whose weight is 0 is a token of the table all the same
		indices := w.node(v, "Cast", []string{w.full(v.Args[1])}, IntOf("to", int64Element))
		rows := w.node(v, "Gather", []string{w.full(v.Args[0]), indices}, IntOf("axis", 0))
		weights := w.node(v, "Unsqueeze", []string{w.full(v.Args[2]), w.ints(2)})
		return w.node(v, "ReduceSum", []string{w.node(v, "Mul", []string{rows, weights}), w.ints(1)}, IntOf("keepdims", 0))
	})
	define(func(w *writer, v *ir.Value, _ ops.ArgMaxOp) string {
		largest := w.node(v, "ArgMax", w.first(v), IntOf("axis", -1), IntOf("keepdims", 0))
		return w.node(v, "Cast", []string{largest}, IntOf("to", float32Element))
	})
	define(func(w *writer, v *ir.Value, _ ops.StraightOp) string {
		return w.node(v, "Identity", []string{w.full(v.Args[1])})
	})
	define(func(w *writer, v *ir.Value, o ops.OneHotOp) string {
		indices := w.node(v, "Cast", []string{w.full(v.Args[0])}, IntOf("to", int64Element))
		offOn := w.constant(floats("off and on", []int{2}, []float32{0, 1}))
		return w.node(v, "OneHot", []string{indices, w.ints(int64(o.Of)), offOn}, IntOf("axis", -1))
	})
	define(func(w *writer, v *ir.Value, _ ops.SoftplusOp) string { return w.node(v, "Softplus", w.first(v)) })
	define(func(w *writer, v *ir.Value, _ ops.SoftmaxOp) string {
		return w.node(v, "Softmax", w.first(v), IntOf("axis", -1))
	})
	define(maskedSoftmax)
	define(firstPlaces)
	define(causalSoftmax)
	define(recurrent)
	define(func(w *writer, v *ir.Value, _ ops.LogSoftmaxOp) string {
		return w.node(v, "LogSoftmax", w.first(v), IntOf("axis", -1))
	})
	define(func(w *writer, v *ir.Value, o ops.TileOp) string {
		return w.node(v, "Tile", append(w.first(v), w.ints(int64(o.Times))))
	})
	define(func(w *writer, v *ir.Value, o ops.FoldOp) string {
		x := w.shaped(v, w.full(v.Args[0]), int64(o.Times), -1)
		return w.node(v, "ReduceSum", []string{x, w.ints(0)}, IntOf("keepdims", 0))
	})
}

// first returns the name of the first arg of a value, as the list of inputs of a node.
func (w *writer) first(v *ir.Value) []string { return []string{w.full(v.Args[0])} }

// ramp computes above max(x, 0) + below min(x, 0).
func ramp(w *writer, v *ir.Value, o ops.RampOp) string {
	x := w.first(v)
	switch {
	case o.Above == 1 && o.Below == 0:
		return w.node(v, "Relu", x)
	case o.Above == 1:
		return w.node(v, "LeakyRelu", x, FloatOf("alpha", o.Below))
	}
	zero := w.number(0, 0)
	above := w.node(v, "Mul", []string{w.node(v, "Max", []string{x[0], zero}), w.number(o.Above, 0)})
	below := w.node(v, "Mul", []string{w.node(v, "Min", []string{x[0], zero}), w.number(o.Below, 0)})
	return w.node(v, "Add", []string{above, below})
}

func clip(w *writer, v *ir.Value, o ops.ClipOp) string {
	return w.node(v, "Clip", append(w.first(v), w.number(o.Low, 0), w.number(o.High, 0)))
}

// topK writes the largest values of each row into a tensor of zeros. Of equal values, ONNX and Tessera both keep the
// first ones.
func topK(w *writer, v *ir.Value, o ops.TopKOp) string {
	x := w.full(v.Args[0])
	row := v.Shape[len(v.Shape)-1]
	if o.K >= row {
		return w.node(v, "Identity", []string{x})
	}
	values := w.node(v, "TopK", []string{x, w.ints(int64(o.K))}, IntOf("axis", -1))
	indices := w.fresh(values + "_indices")
	last := &w.graph.Nodes[len(w.graph.Nodes)-1]
	last.Outputs = append(last.Outputs, indices)
	zeros := w.node(v, "ConstantOfShape", []string{w.node(v, "Shape", []string{x})}) // ConstantOfShape gives float32 by default
	return w.node(v, "ScatterElements", []string{zeros, indices, values}, IntOf("axis", -1))
}

// standardise views the value as (blocks, places, channels).
func standardise(w *writer, v *ir.Value, o ops.StandardiseOp) string {
	mean := func(x string) string {
		return w.node(v, "ReduceMean", []string{x}, IntsOf("axes", 1), IntOf("keepdims", 1))
	}
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Places), int64(o.Channels))
	centred := w.node(v, "Sub", []string{x, mean(x)})
	variance := mean(w.node(v, "Mul", []string{centred, centred}))
	deviation := w.node(v, "Sqrt", []string{w.node(v, "Add", []string{variance, w.number(o.Epsilon, 0)})})
	return w.reshape(v, w.node(v, "Div", []string{centred, deviation}), w.dims(v))
}

// maxPlus adds codes (batch, units, 1) and atoms (units, n), and takes the maximum over the units.
func maxPlus(w *writer, v *ir.Value, _ ops.MaxPlusOp) string {
	h := w.shaped(v, w.full(v.Args[0]), -1, int64(v.Args[1].Shape[0]), 1)
	sum := w.node(v, "Add", []string{h, w.full(v.Args[1])})
	return w.node(v, "ReduceMax", []string{sum}, IntsOf("axes", 1), IntOf("keepdims", 0))
}

// maskedSoftmax replaces masked values by a number whose exponential is 0, and applies a softmax.
func maskedSoftmax(w *writer, v *ir.Value, o ops.MaskedSoftmaxOp) string {
	dims := slices.Repeat([]int64{1}, len(v.Shape))
	dims[0], dims[len(dims)-1] = -1, int64(o.Length)
	mask := w.shaped(v, w.full(v.Args[1]), dims...)
	counted := w.node(v, "Greater", []string{mask, w.number(0.5, 0)})
	x := w.node(v, "Where", []string{counted, w.full(v.Args[0]), w.number(-1e30, 0)})
	return w.node(v, "Mul", []string{w.node(v, "Softmax", []string{x}, IntOf("axis", -1)), w.node(v, "Cast", []string{counted}, IntOf("to", float32Element))})
}

// causalSoftmax adds a number whose exponential is 0 to the elements behind the diagonal, and applies a softmax.
func causalSoftmax(w *writer, v *ir.Value, o ops.CausalSoftmaxOp) string {
	behind := make([]float32, o.Length*o.Length)
	for i := range o.Length {
		for j := i + 1; j < o.Length; j++ {
			behind[i*o.Length+j] = -1e30
		}
	}
	mask := w.constant(floats(fmt.Sprintf("causal%d", o.Length), []int{o.Length, o.Length}, behind))
	return w.node(v, "Softmax", []string{w.node(v, "Add", []string{w.full(v.Args[0]), mask})}, IntOf("axis", -1))
}

// recurrent is the operator GRU or LSTM, for one direction of sequences (tokens, batch, features). Rows of its weights are ordered by
// gate: z, r, n of a GRU and i, o, f, g of an LSTM.
func recurrent(w *writer, v *ir.Value, o ops.RecurrentOp) string {
	if o.Masked {
		w.fail(v, "a mask of a recurrent layer has no ONNX form: leave out `mask`, if padding is behind the last token")
		return ""
	}
	op, order, gates := "GRU", []int{1, 0, 2}, 3
	if o.LSTM {
		op, order, gates = "LSTM", []int{0, 3, 1, 2}, 4
	}
	var rows []int64
	for _, gate := range order {
		rows = append(rows, lists.Of(o.Units, func(i int) int64 { return int64(gate*o.Units + i) })...)
	}
	ordered := func(x string) string { return w.node(v, "Gather", []string{x, w.ints(rows...)}, IntOf("axis", 0)) }
	matrix := func(i int) string {
		return w.shaped(v, ordered(w.permuted(v, w.full(v.Args[i]), 1, 0)), 1, int64(gates*o.Units), int64(v.Args[i].Shape[0]))
	}
	weights, recurrent := matrix(1), matrix(3)
	biases := w.node(v, "Concat", []string{ordered(w.full(v.Args[2])), ordered(w.full(v.Args[4]))}, IntOf("axis", 0))
	x := w.permuted(v, w.full(v.Args[0]), 1, 0, 2)
	attributes := []Attribute{IntOf("hidden_size", o.Units)}
	if !o.LSTM {
		attributes = append(attributes, IntOf("linear_before_reset", 1))
	}
	if o.Reverse {
		attributes = append(attributes, StringOf("direction", "reverse"))
	}
	y := w.node(v, op, []string{x, weights, recurrent, w.shaped(v, biases, 1, int64(2*gates*o.Units))}, attributes...) // (tokens, 1, batch, units)
	return w.reshape(v, w.permuted(v, y, 2, 1, 0, 3), w.dims(v))
}

// firstPlaces compares each length with the places 0, 1, 2, ...
func firstPlaces(w *writer, v *ir.Value, o ops.FirstPlacesOp) string {
	places := lists.Of(o.Of, func(i int) float32 { return float32(i) })
	list := w.constant(floats(fmt.Sprintf("places%d", o.Of), []int{1, o.Of}, places))
	less := w.node(v, "Less", []string{list, w.shaped(v, w.full(v.Args[0]), -1, 1)})
	return w.node(v, "Cast", []string{less}, IntOf("to", float32Element))
}

// heads returns a sequence (batch, tokens, features) viewed as (batch, tokens, heads, features of a head), with its
// axes permuted.
func (w *writer) heads(v *ir.Value, x *ir.Value, a ops.Attention, axes ...int64) string {
	split := w.shaped(v, w.full(x), -1, int64(x.Shape[1]), int64(a.Heads), int64(a.Features/a.Heads))
	return w.permuted(v, split, axes...)
}

func scores(w *writer, v *ir.Value, o ops.AttentionScoresOp) string {
	a := ops.Attention(o)
	x := w.heads(v, v.Args[0], a, 0, 2, 1, 3)
	return w.node(v, "MatMul", []string{x, w.heads(v, v.Args[1], a, 0, 2, 3, 1)})
}

func mix(w *writer, v *ir.Value, o ops.AttentionMixOp) string {
	weights := w.full(v.Args[0])
	if o.Transposed {
		weights = w.permuted(v, weights, 0, 1, 3, 2)
	}
	mixed := w.node(v, "MatMul", []string{weights, w.heads(v, v.Args[1], o.Attention, 0, 2, 1, 3)})
	return w.reshape(v, w.permuted(v, mixed, 0, 2, 1, 3), w.dims(v))
}

// noForm reports that ONNX has no operator for the settings of an op.
func (w *writer) noForm(v *ir.Value, spec any) string {
	w.fail(v, fmt.Sprintf("%s has no ONNX form with these settings: %+v", nameOf(v.Op, spec), spec))
	return ""
}

// node adds an operator that belongs to the layer of v, and returns the name of its output.
func (w *writer) node(v *ir.Value, op string, inputs []string, attributes ...Attribute) string {
	name := op
	if path, _, _ := strings.Cut(v.Layer, " "); path != "" {
		name = path + "/" + op
	}
	name = w.fresh(name)
	w.graph.Nodes = append(w.graph.Nodes, Node{Inputs: inputs, Outputs: []string{name}, Name: name, Op: op, Attributes: attributes})
	return name
}

// fresh returns a name that no value has: the given name, or this name with a number.
func (w *writer) fresh(name string) string {
	free := name
	for i := 2; w.taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	w.taken[free] = true
	return free
}

// constant adds an initializer and returns its name. If an equal one exists, it returns the name of that one.
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

// number returns the name of a constant with one element and the given number of axes.
func (w *writer) number(c float64, axes int) string {
	t := floats("", slices.Repeat([]int{1}, axes), []float32{float32(c)})
	t.Name = fmt.Sprintf("number[%v]%s", float32(c), strings.Repeat("x1", axes))
	return w.constant(t)
}

// ints returns the name of a constant list of whole numbers.
func (w *writer) ints(list ...int64) string {
	t := Tensor{Dims: []int64{int64(len(list))}, Type: int64Element, Name: "ints" + strings.ReplaceAll(fmt.Sprint(list), " ", ",")}
	for _, n := range list {
		t.Raw = binary.LittleEndian.AppendUint64(t.Raw, uint64(n))
	}
	return w.constant(t)
}

// reshape reshapes x to the axes dims, of which at most one depends on the batch.
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

// shaped reshapes x to axes of the given lengths; -1 stands for the remaining length.
func (w *writer) shaped(v *ir.Value, x string, dims ...int64) string {
	return w.node(v, "Reshape", []string{x, w.ints(dims...)})
}

func (w *writer) permuted(v *ir.Value, x string, axes ...int64) string {
	return w.node(v, "Transpose", []string{x}, IntsOf("perm", axes...))
}

// full returns the name of the value v with all its elements, expanded if it is broadcast.
func (w *writer) full(v *ir.Value) string {
	r := w.ref(v)
	if w.err != nil || slices.Equal(r.dims, w.dims(v)) {
		return r.name
	}
	var parts []string // parts of the shape
	for i, d := range w.dims(v) {
		switch {
		case d == r.dims[i]:
			parts = append(parts, w.ints(1)) // with 1, Expand keeps the length of the axis
		case d.batch:
			n := w.node(v, "Shape", []string{w.module.Inputs[0].Name}, IntOf("start", 0), IntOf("end", 1))
			parts = append(parts, w.node(v, "Mul", []string{n, w.ints(int64(d.n))}))
		default:
			parts = append(parts, w.ints(int64(d.n)))
		}
	}
	shape := w.node(v, "Concat", parts, IntOf("axis", 0))
	r = ref{w.node(v, "Expand", []string{r.name, shape}), w.dims(v)}
	w.refs[v] = r
	return r.name
}

// floats returns a float32 tensor with the given name and shape.
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

// IntOf returns an attribute whose value is a whole number.
func IntOf(name string, n int) Attribute {
	wide := int64(n)
	return Attribute{Name: name, Int: &wide, Type: intAttribute}
}

// IntsOf returns an attribute whose value is a list of whole numbers.
func IntsOf(name string, list ...int64) Attribute {
	return Attribute{Name: name, Ints: list, Type: intsAttribute}
}

// StringOf returns an attribute that is a text.
func StringOf(name, text string) Attribute {
	return Attribute{Name: name, Text: []byte(text), Type: stringAttribute}
}

// FloatOf returns an attribute whose value is a number, rounded to float32.
func FloatOf(name string, x float64) Attribute {
	narrow := float32(x)
	return Attribute{Name: name, Float: &narrow, Type: floatAttribute}
}

func init() {
	define(convolve)
	define(convolveImages)
	define(func(w *writer, v *ir.Value, o ops.PoolMaxOp) string { return pool(w, v, ops.Pooling(o), "MaxPool") })
	define(func(w *writer, v *ir.Value, o ops.PoolSumOp) string {
		mean := pool(w, v, ops.Pooling(o), "AveragePool", IntOf("count_include_pad", bit(!o.Mean)))
		if o.Mean {
			return mean
		}
		return w.node(v, "Mul", []string{mean, w.number(float64(o.Kernel*o.Kernel), 0)})
	})
	define(spread)
	define(separable)
	define(func(w *writer, v *ir.Value, o ops.CutPatchesOp) string {
		x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Height/o.Size), int64(o.Size), int64(o.Width/o.Size), int64(o.Size), int64(o.Channels))
		return w.reshape(v, w.permuted(v, x, 0, 1, 3, 2, 4, 5), w.dims(v))
	})
	define(func(w *writer, v *ir.Value, o ops.JoinPatchesOp) string {
		x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Height/o.Size), int64(o.Width/o.Size), int64(o.Size), int64(o.Size), int64(o.Channels))
		return w.reshape(v, w.permuted(v, x, 0, 1, 3, 2, 4, 5), w.dims(v))
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// channelsFirst and channelsLast convert between channels last and channels first, because ONNX convolves and pools
// images with channels first. Inference engines remove adjacent pairs of these nodes.
func (w *writer) channelsFirst(v *ir.Value, x string) string { return w.permuted(v, x, 0, 3, 1, 2) }
func (w *writer) channelsLast(v *ir.Value, x string) string  { return w.permuted(v, x, 0, 2, 3, 1) }

// window describes the windows of a convolution or a pooling along one axis.
type window struct{ in, out, kernel, stride, dilation, before int }

// after returns the padding after the image for which the number of windows is the length of the output. ok is false if
// there is none.
func (a window) after() (pixels int, ok bool) {
	need := a.spanned()
	pixels = max(0, need-a.in-a.before)
	return pixels, a.in+a.before+pixels-need < a.stride
}

// spanned returns the number of pixels from the first pixel of the first window to the last pixel of the last window.
func (a window) spanned() int { return (a.out-1)*a.stride + (a.kernel-1)*a.dilation + 1 }

// windowed adds a convolution or a pooling of images.
func (w *writer) windowed(v *ir.Value, op string, axes [2]window, filters []string, more ...Attribute) string {
	top, left := axes[0], axes[1]
	below, ok1 := top.after()
	right, ok2 := left.after()
	if !ok1 || !ok2 {
		return w.noForm(v, specOf(v.Op))
	}
	attributes := append(windowAttributes(axes), IntsOf("pads", int64(top.before), int64(left.before), int64(below), int64(right)))
	x := w.channelsFirst(v, w.full(v.Args[0]))
	return w.channelsLast(v, w.node(v, op, append([]string{x}, filters...), append(attributes, more...)...))
}

// windowAttributes returns the attributes that all operators on windows have. Average pooling has no dilation.
func windowAttributes(axes [2]window) []Attribute {
	of := func(name string, f func(a window) int) Attribute {
		return IntsOf(name, int64(f(axes[0])), int64(f(axes[1])))
	}
	list := []Attribute{of("kernel_shape", func(a window) int { return a.kernel }), of("strides", func(a window) int { return a.stride })}
	if axes[0].dilation != 1 || axes[1].dilation != 1 {
		list = append(list, of("dilations", func(a window) int { return a.dilation }))
	}
	return list
}

func pool(w *writer, v *ir.Value, g ops.Pooling, op string, more ...Attribute) string {
	axes := [2]window{{g.In[0], g.Out[0], g.Kernel, g.Stride, 1, g.Top}, {g.In[1], g.Out[1], g.Kernel, g.Stride, 1, g.Left}}
	return w.windowed(v, op, axes, nil, more...)
}

// windowsOf returns the windows of a convolution along both axes.
func windowsOf(g ops.Convolution) [2]window {
	return [2]window{{g.In[0], g.Out[0], g.Kernel, g.Stride, g.Dilation, g.Top},
		{g.In[1], g.Out[1], cmp.Or(g.KernelWidth, g.Kernel), cmp.Or(g.StrideWidth, g.Stride), g.Dilation, g.Left}}
}

// filtersOf returns the value of a convolution's filters, even if an op has transformed them for its kernel.
func filtersOf(v *ir.Value) *ir.Value {
	if _, converted := specOf(v.Args[1].Op).(ops.WinogradOp); converted {
		return v.Args[1].Args[0]
	}
	return v.Args[1]
}

func convolve(w *writer, v *ir.Value, o ops.ConvolveOp) string {
	filters := w.permuted(v, w.full(filtersOf(v)), 3, 2, 0, 1)
	return w.windowed(v, "Conv", windowsOf(ops.Convolution(o)), []string{filters}, IntOf("group", o.Groups))
}

// convolveImages adds the transposed convolution. The padding of the convolution is cropped from the result.
func convolveImages(w *writer, v *ir.Value, o ops.ConvolveImagesOp) string {
	var before, after, extra []int64
	axes := windowsOf(ops.Convolution(o))
	for _, a := range axes {
		rest := a.spanned() - a.before - a.in
		if -rest >= max(a.stride, a.dilation) {
			return w.noForm(v, o)
		}
		before, after, extra = append(before, int64(a.before)), append(after, int64(max(0, rest))), append(extra, int64(max(0, -rest)))
	}
	attributes := append(windowAttributes(axes), IntOf("group", o.Groups), IntsOf("pads", append(before, after...)...), IntsOf("output_padding", extra...))
	x := w.channelsFirst(v, w.full(v.Args[0]))
	filters := w.permuted(v, w.full(v.Args[1]), 3, 2, 0, 1)
	return w.channelsLast(v, w.node(v, "ConvTranspose", []string{x, filters}, attributes...))
}

// spread repeats every pixel in a block. Other windows, which occur only in derivatives, have no form.
func spread(w *writer, v *ir.Value, o ops.PoolSpreadOp) string {
	k := o.Kernel
	if o.Mean || o.Stride != k || o.Top != 0 || o.Left != 0 || o.In[0] != k*o.Out[0] || o.In[1] != k*o.Out[1] {
		return w.noForm(v, o)
	}
	height, width, channels, times := int64(o.Out[0]), int64(o.Out[1]), int64(o.Out[2]), int64(k)
	x := w.shaped(v, w.full(v.Args[0]), -1, height, 1, width, 1, channels)
	x = w.node(v, "Tile", []string{x, w.ints(1, 1, times, 1, times, 1)})
	return w.reshape(v, x, w.dims(v))
}

// separable multiplies by the matrix of the rows, then by the matrix of the columns.
func separable(w *writer, v *ir.Value, o ops.Separable) string {
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.In[0]), int64(o.In[1]*o.In[2]))
	x = w.node(v, "MatMul", []string{w.taps(o.Rows, o.In[0]), x})
	x = w.shaped(v, x, -1, int64(o.In[1]), int64(o.In[2]))
	return w.reshape(v, w.node(v, "MatMul", []string{w.taps(o.Columns, o.In[1]), x}), w.dims(v))
}

// taps returns the matrix of a filter along an axis of n pixels.
func (w *writer) taps(list []ops.Tap, n int) string {
	values := make([]float32, len(list)*n)
	for i, t := range list {
		for k, weight := range t.Weights {
			values[i*n+t.From+k] = float32(weight)
		}
	}
	return w.constant(floats(w.fresh("filter"), []int{len(list), n}, values))
}

func init() { define(decompose) }

// morphology adds operators on images with channels first, for one value. Maxima and negations are exact, so the
// results are exact, too.
type morphology struct {
	*writer
	v *ir.Value
}

// decompose computes the layers amd and pado; see [morph.Method].
func decompose(w *writer, v *ir.Value, o layers.DecomposeOp) string {
	m := morphology{w, v}
	channels := 1
	if len(o.Shape) == 3 {
		channels = o.Shape[2]
	}
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.Shape[0]), int64(o.Shape[1]), int64(channels))
	x = w.channelsFirst(v, x)
	open, closed := []string{x}, []string{x}
	negated := m.node("Neg", x)
	for l := range o.Levels {
		radius := min(o.Start+l*o.Step, o.Shape[0]+o.Shape[1])
		open = append(open, m.openRec(x, negated, radius))
		if o.Method == morph.AMD { // the closing of x is the negated opening of -x, and the same holds for the reconstructions
			closed = append(closed, m.node("Neg", m.openRec(negated, x, radius)))
		}
	}
	var parts []string
	if o.Original {
		parts = append(parts, x)
	}
	for l := 1; l <= o.Levels; l++ {
		r := m.node("Sub", open[l-1], open[l])
		if o.Method == morph.AMD {
			r = m.half(m.node("Sub", r, m.node("Sub", closed[l], closed[l-1])))
		}
		parts = append(parts, r)
	}
	rest := open[o.Levels]
	if o.Method == morph.AMD {
		rest = m.half(m.node("Add", closed[o.Levels], rest))
	}
	joined := w.node(v, "Concat", append(parts, rest), IntOf("axis", 1))
	return w.channelsLast(v, joined)
}

// node adds an operator without attributes.
func (m morphology) node(op string, inputs ...string) string { return m.writer.node(m.v, op, inputs) }

func (m morphology) half(x string) string { return m.node("Mul", x, m.number(0.5, 0)) }

// openRec returns the opening of x by the disk, followed by reconstruction by dilation under x.
func (m morphology) openRec(x, negated string, radius int) string {
	eroded := m.node("Neg", m.dilate(negated, radius))
	return m.reconstruct(m.node("Min", m.dilate(eroded, radius), x), x)
}

// dilate takes the largest value under the disk. For each distance dy from the centre, it takes the maximum over the
// rows dy above and dy below, from dx before to dx after, where dx*dx + dy*dy <= radius*radius. A window of two rows
// with a distance of 2 dy covers both rows.
func (m morphology) dilate(x string, radius int) string {
	widest := int64(radius)
	y := m.largest(x, IntsOf("kernel_shape", 1, 2*widest+1), IntsOf("pads", 0, widest, 0, widest))
	for dy := 1; dy <= radius; dy++ {
		rows, dx := int64(dy), int64(math.Sqrt(float64(radius*radius-dy*dy)))
		padded := m.node("Pad", x, m.ints(0, 0, rows, 0, 0, 0, rows, 0), m.number(math.Inf(-1), 0)) // MaxPool does not accept padding of the size of a window
		y = m.node("Max", y, m.largest(padded, IntsOf("kernel_shape", 2, 2*dx+1), IntsOf("dilations", 2*rows, 1), IntsOf("pads", 0, dx, 0, dx)))
	}
	return y
}

func (m morphology) largest(x string, windows ...Attribute) string {
	return m.writer.node(m.v, "MaxPool", []string{x}, append(windows, IntsOf("strides", 1, 1))...)
}

// reconstruct repeats marker <- min(dilation of marker by the 3 x 3 square, mask) until nothing changes.
func (m morphology) reconstruct(marker, mask string) string {
	outer := m.graph
	body := &Graph{Name: m.fresh("reconstruction")}
	iteration, condition, before := m.fresh("iteration"), m.fresh("condition"), m.fresh("marker")
	m.graph = body
	after := m.node("Min", m.largest(before, IntsOf("kernel_shape", 3, 3), IntsOf("pads", 1, 1, 1, 1)), mask)
	change := m.writer.node(m.v, "ReduceMax", []string{m.node("Sub", after, before)}, IntOf("keepdims", 0)) // the difference is never negative
	goesOn := m.writer.node(m.v, "Cast", []string{change}, IntOf("to", boolElement))
	m.graph = outer
	of := func(name string, element int64, shape *Shape) Value {
		return Value{Name: name, Type: &Type{&TensorType{element, shape}}}
	}
	body.Inputs = []Value{of(iteration, int64Element, &Shape{}), of(condition, boolElement, &Shape{}), of(before, float32Element, nil)}
	body.Outputs = []Value{of(goesOn, boolElement, &Shape{}), of(after, float32Element, nil)}
	return m.writer.node(m.v, "Loop", []string{"", "", marker}, Attribute{Name: "body", Graph: body, Type: graphAttribute})
}
