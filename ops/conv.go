package ops

import (
	"cmp"
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	vector "tessera/kernel"
)

// Convolution is the geometry of a two-dimensional convolution (a cross-correlation, as everywhere in the field) of images
// whose channels come last:
//
//	y(i,j,f) = sum over u,v,c of x(i Stride + u Dilation - Top, j Stride + v Dilation - Left, c) w(u,v,c,f)
//
// for 0 <= u,v < Kernel, with x = 0 outside of the image. KernelWidth and StrideWidth, if they are not 0, replace Kernel and
// Stride along the width. With Groups > 1 channels and filters are split into equal groups; a filter only reads the channels
// of its group, and c is the index within the group. The three ops below are linear in each input and each other's
// derivatives: they can be differentiated any number of times.
type Convolution struct {
	In       [3]int // height, width, channels of an image
	Out      [3]int // height, width, filters
	Kernel   int
	Stride   int
	Dilation int
	Groups   int
	Top      int // rows of padding above; Out determines the padding below
	Left     int // columns of padding before

	KernelWidth int // of filters that are not square, else 0
	StrideWidth int // between columns, if it is another one than between rows, else 0
}

// kernelWidth is the width of a filter.
func (g Convolution) kernelWidth() int { return cmp.Or(g.KernelWidth, g.Kernel) }

// strideWidth is the stride between columns.
func (g Convolution) strideWidth() int { return cmp.Or(g.StrideWidth, g.Stride) }

// ConvolveOp is the spec of [Convolution.Convolve], ConvolveImagesOp of [Convolution.Images] (the transposed convolution),
// ConvolveGradientOp of [Convolution.Gradient], with the same inputs and outputs.
type (
	ConvolveOp         Convolution
	ConvolveImagesOp   Convolution
	ConvolveGradientOp Convolution
)

// Filters is the shape of w: (height of a filter, width, channels of one group, filters).
func (g Convolution) Filters() []int {
	return []int{g.Kernel, g.kernelWidth(), g.In[2] / g.Groups, g.Out[2]}
}

// Check returns an error for an invalid geometry.
func (g Convolution) Check() error {
	for _, n := range []int{g.In[0], g.In[1], g.In[2], g.Out[0], g.Out[1], g.Out[2], g.Kernel, g.Stride, g.Dilation, g.Groups, g.kernelWidth(), g.strideWidth()} {
		if n < 1 {
			return fmt.Errorf("convolution: %+v: every size must be > 0", g)
		}
	}
	if g.Top < 0 || g.Left < 0 {
		return errors.New("convolution: negative padding")
	}
	if g.In[2]%g.Groups != 0 || g.Out[2]%g.Groups != 0 {
		return fmt.Errorf("convolution: %d channels and %d filters do not divide into %d groups", g.In[2], g.Out[2], g.Groups)
	}
	return nil
}

// Convolve returns y (batch, height, width, filters) of images x (batch, height, width, channels) and filters w.
func (g Convolution) Convolve(x, w *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In[:], w, g.Filters()); err != nil {
		return nil, err
	}
	batch := x.Shape()[0]
	l := newLowering(g)
	o := &Unitwise{
		Spec:     ConvolveOp(g),
		Out:      tensor.Shape{batch, g.Out[0], g.Out[1], g.Out[2]},
		Units:    batch,
		ByUnit:   []bool{true, false},
		Scratch:  l.scratch(batch),
		Work:     g.work(batch),
		Division: ir.ByUnits,
		Float32:  convolve(l, vector.Float32),
		Float64:  convolve(l, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(g.Images(grad, in[1]))(g.Gradient(in[0], grad))
		},
	}
	if f := newWinograd(g); f != nil && f.pays(batch) {
		o.Prepared, o.Scratch, o.Work = f.filters(), f.scratch(batch), f.work(batch)
		o.Float32, o.Float64 = convolveWinograd(f, vector.Float32), convolveWinograd(f, vector.Float64)
	}
	return o.Apply(x, w)
}

// Images returns the transposed convolution of y (batch, height, width, filters): images (batch, height, width, channels).
// It is the derivative of [Convolution.Convolve] with respect to the images.
func (g Convolution) Images(y, w *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(y, g.Out[:], w, g.Filters()); err != nil {
		return nil, err
	}
	batch := y.Shape()[0]
	l := newLowering(g)
	o := &Unitwise{
		Spec:     ConvolveImagesOp(g),
		Out:      tensor.Shape{batch, g.In[0], g.In[1], g.In[2]},
		Units:    batch,
		ByUnit:   []bool{true, false},
		Scratch:  l.scratch(batch),
		Work:     g.work(batch),
		Division: ir.ByUnits,
		Float32:  convolveImages(l, vector.Float32),
		Float64:  convolveImages(l, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(g.Convolve(grad, in[1]))(g.Gradient(grad, in[0]))
		},
	}
	return o.Apply(y, w)
}

// Gradient returns the derivative of [Convolution.Convolve] with respect to the filters, for images x and the gradient of
// y.
func (g Convolution) Gradient(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In[:], nil, nil); err != nil {
		return nil, err
	}
	if err := g.fits(y, g.Out[:], nil, nil); err != nil {
		return nil, err
	}
	l := newLowering(g)
	filters := g.Filters()
	o := &Unitwise{
		Spec:     ConvolveGradientOp(g),
		Out:      filters,
		Units:    l.row, // a unit is the gradient for one value of a patch and all filters
		ByUnit:   []bool{false, false},
		Scratch:  l.scratch(x.Shape()[0]),
		Work:     g.work(x.Shape()[0]),
		Division: ir.BySums,
		Float32:  convolveGradient(l, vector.Float32),
		Float64:  convolveGradient(l, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return both(g.Images(in[1], grad))(g.Convolve(in[0], grad))
		},
	}
	return o.Apply(x, y)
}

// both collects two results.
func both(a *gorgonia.Node, first error) func(b *gorgonia.Node, err error) (gorgonia.Nodes, error) {
	return func(b *gorgonia.Node, second error) (gorgonia.Nodes, error) {
		return gorgonia.Nodes{a, b}, errors.Join(first, second)
	}
}

// fits returns an error for images or filters of other shapes than the geometry's.
func (g Convolution) fits(x *gorgonia.Node, image []int, w *gorgonia.Node, filters []int) error {
	if err := g.Check(); err != nil {
		return err
	}
	if s := x.Shape(); len(s) != 4 || !s[1:].Eq(tensor.Shape(image)) {
		return fmt.Errorf("convolution: got images of shape %v, want (batch) and %v", s, image)
	}
	if w != nil && !w.Shape().Eq(tensor.Shape(filters)) {
		return fmt.Errorf("convolution: got filters of shape %v, want %v", w.Shape(), filters)
	}
	return nil
}

// work is the multiplications and additions of a batch.
func (g Convolution) work(batch int) float64 {
	return 2 * float64(batch*g.Out[0]*g.Out[1]) * float64(g.Kernel*g.kernelWidth()*g.In[2]/g.Groups*g.Out[2])
}
