package onnx

import (
	"cmp"

	"tessera/engine/ir"
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
type window struct{ in, out, kernel, stride, dilation, before int }

// after is the padding after the image, so that there are as many windows as the output is long; ok is false if there is none.
func (a window) after() (pixels int, ok bool) {
	need := a.spanned()
	pixels = max(0, need-a.in-a.before)
	return pixels, a.in+a.before+pixels-need < a.stride
}

// spanned is the number of pixels from the first window's first to the last window's last.
func (a window) spanned() int { return (a.out-1)*a.stride + (a.kernel-1)*a.dilation + 1 }

// windowed adds a convolution or a pooling of images.
func (w *writer) windowed(v *ir.Value, op string, axes [2]window, filters []string, more ...Attribute) string {
	top, left := axes[0], axes[1]
	below, ok1 := top.after()
	right, ok2 := left.after()
	if !ok1 || !ok2 {
		return w.noForm(v, specOf(v.Op))
	}
	attributes := append(windowAttributes(axes), intsOf("pads", int64(top.before), int64(left.before), int64(below), int64(right)))
	x := w.channelsFirst(v, w.full(v.Args[0]))
	return w.channelsLast(v, w.node(v, op, append([]string{x}, filters...), append(attributes, more...)...))
}

// windowAttributes are the attributes that all operators on windows have; averages have no dilation.
func windowAttributes(axes [2]window) []Attribute {
	of := func(name string, f func(a window) int) Attribute {
		return intsOf(name, int64(f(axes[0])), int64(f(axes[1])))
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

// windowsOf are the windows of a convolution.
func windowsOf(g ops.Convolution) [2]window {
	return [2]window{{g.In[0], g.Out[0], g.Kernel, g.Stride, g.Dilation, g.Top},
		{g.In[1], g.Out[1], cmp.Or(g.KernelWidth, g.Kernel), cmp.Or(g.StrideWidth, g.Stride), g.Dilation, g.Left}}
}

// filtersOf is the value of a convolution's filters, also where an op has converted them for its kernel.
func filtersOf(v *ir.Value) *ir.Value {
	if _, converted := specOf(v.Args[1].Op).(ops.WinogradOp); converted {
		return v.Args[1].Args[0]
	}
	return v.Args[1]
}

func convolve(w *writer, v *ir.Value, o ops.ConvolveOp) string {
	filters := w.permuted(v, w.full(filtersOf(v)), 3, 2, 0, 1)
	return w.windowed(v, "Conv", windowsOf(ops.Convolution(o)), []string{filters}, intOf("group", o.Groups))
}

// convolveImages is the transposed convolution: what it pads is cropped from the result.
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
	attributes := append(windowAttributes(axes), intOf("group", o.Groups), intsOf("pads", append(before, after...)...), intsOf("output_padding", extra...))
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
