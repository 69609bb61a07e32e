package onnx

import (
	"tessera/ir"
	"tessera/ops"
)

func init() {
	define(convolve)
	define(convolveImages)
	define(func(w *writer, v *ir.Value, o ops.PoolMaxOp) string { return pool(w, v, ops.Pooling(o), "MaxPool") })
	define(func(w *writer, v *ir.Value, o ops.PoolSumOp) string {
		mean := pool(w, v, ops.Pooling(o), "AveragePool", intOf("count_include_pad", bit(!o.Mean)))
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

// channelsFirst and channelsLast convert images; ONNX convolves and pools images with channels first. Engines remove pairs of
// these nodes.
func (w *writer) channelsFirst(v *ir.Value, x string) string { return w.permuted(v, x, 0, 3, 1, 2) }
func (w *writer) channelsLast(v *ir.Value, x string) string  { return w.permuted(v, x, 0, 2, 3, 1) }

// window is one axis of a convolution or a pooling.
type window struct{ in, out, reach, stride, before int }

// after is the padding after the image, so that there are as many windows as the output is long; ok is false if there is none.
func (a window) after() (pixels int, ok bool) {
	need := (a.out-1)*a.stride + a.reach
	pixels = max(0, need-a.in-a.before)
	return pixels, a.in+a.before+pixels-need < a.stride
}

// windowed adds a convolution or a pooling of images.
func (w *writer) windowed(v *ir.Value, op string, axes [2]window, kernel, stride, dilation int, filters []string, more ...Attribute) string {
	top, left := axes[0], axes[1]
	below, ok1 := top.after()
	right, ok2 := left.after()
	if !ok1 || !ok2 {
		return w.noForm(v, specOf(v.Op))
	}
	attributes := append(windowAttributes(kernel, stride, dilation), intsOf("pads", int64(top.before), int64(left.before), int64(below), int64(right)))
	x := w.channelsFirst(v, w.full(v.Args[0]))
	return w.channelsLast(v, w.node(v, op, append([]string{x}, filters...), append(attributes, more...)...))
}

// windowAttributes are the attributes that all operators on windows have; pooling has no dilation, which is then 0.
func windowAttributes(kernel, stride, dilation int) []Attribute {
	k, s, d := int64(kernel), int64(stride), int64(dilation)
	list := []Attribute{intsOf("kernel_shape", k, k), intsOf("strides", s, s)}
	if d > 0 {
		list = append(list, intsOf("dilations", d, d))
	}
	return list
}

func pool(w *writer, v *ir.Value, g ops.Pooling, op string, more ...Attribute) string {
	axes := [2]window{{g.In[0], g.Out[0], g.Kernel, g.Stride, g.Top}, {g.In[1], g.Out[1], g.Kernel, g.Stride, g.Left}}
	return w.windowed(v, op, axes, g.Kernel, g.Stride, 0, nil, more...)
}

// filtersOf is the value of a convolution's filters, also where an op has converted them for its kernel.
func filtersOf(v *ir.Value) *ir.Value {
	if _, converted := specOf(v.Args[1].Op).(ops.WinogradOp); converted {
		return v.Args[1].Args[0]
	}
	return v.Args[1]
}

func convolve(w *writer, v *ir.Value, o ops.ConvolveOp) string {
	g := ops.Convolution(o)
	filters := w.permuted(v, w.full(filtersOf(v)), 3, 2, 0, 1)
	reach := (g.Kernel-1)*g.Dilation + 1
	axes := [2]window{{g.In[0], g.Out[0], reach, g.Stride, g.Top}, {g.In[1], g.Out[1], reach, g.Stride, g.Left}}
	return w.windowed(v, "Conv", axes, g.Kernel, g.Stride, g.Dilation, []string{filters}, intOf("group", g.Groups))
}

// convolveImages is the transposed convolution: what it pads is cropped from the result.
func convolveImages(w *writer, v *ir.Value, o ops.ConvolveImagesOp) string {
	g := ops.Convolution(o)
	reach := (g.Kernel-1)*g.Dilation + 1
	crop := func(axis, before int) (after, extra int64) {
		rest := (g.Out[axis]-1)*g.Stride + reach - before - g.In[axis]
		return int64(max(0, rest)), int64(max(0, -rest))
	}
	below, extraRows := crop(0, g.Top)
	right, extraColumns := crop(1, g.Left)
	if max(extraRows, extraColumns) >= int64(max(g.Stride, g.Dilation)) {
		return w.noForm(v, o)
	}
	attributes := append(windowAttributes(g.Kernel, g.Stride, g.Dilation), intOf("group", g.Groups),
		intsOf("pads", int64(g.Top), int64(g.Left), below, right), intsOf("output_padding", extraRows, extraColumns))
	x := w.channelsFirst(v, w.full(v.Args[0]))
	filters := w.permuted(v, w.full(v.Args[1]), 3, 2, 0, 1)
	return w.channelsLast(v, w.node(v, "ConvTranspose", []string{x, filters}, attributes...))
}

// spread repeats every pixel in a block; other windows, which derivatives use, have no form.
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

// separable multiplies by the matrix of the rows, then by that of the columns.
func separable(w *writer, v *ir.Value, o ops.Separable) string {
	x := w.shaped(v, w.full(v.Args[0]), -1, int64(o.In[0]), int64(o.In[1]*o.In[2]))
	x = w.node(v, "MatMul", []string{w.taps(o.Rows, o.In[0]), x})
	x = w.shaped(v, x, -1, int64(o.In[1]), int64(o.In[2]))
	return w.reshape(v, w.node(v, "MatMul", []string{w.taps(o.Columns, o.In[1]), x}), w.dims(v))
}

// taps is the matrix of a filter along an axis of n pixels.
func (w *writer) taps(list []ops.Tap, n int) string {
	values := make([]float32, len(list)*n)
	for i, t := range list {
		for k, weight := range t.Weights {
			values[i*n+t.From+k] = float32(weight)
		}
	}
	return w.constant(floats(w.fresh("filter"), []int{len(list), n}, values))
}
