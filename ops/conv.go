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
// convolveGradientOp of [Convolution.Gradient], with the same inputs and outputs.
type (
	ConvolveOp         Convolution
	ConvolveImagesOp   Convolution
	convolveGradientOp Convolution
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
		Spec:     convolveGradientOp(g),
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

// lowering turns a convolution into matrix products (im2col): for every pixel of the output a row contains the patch of the
// image under the filters, and rows times filters is the output. A patch consists of runs of values that are contiguous in
// the image; values outside the image are 0.
type lowering struct {
	Convolution
	channels int // of one group
	filters  int // of one group
	row      int // values in a patch of one group: height * width of a filter * channels
	run      int // values in a run
	runs     int // in one row of the filters: 1 if neighbouring columns are contiguous, else their number
}

func newLowering(g Convolution) lowering {
	l := lowering{Convolution: g, channels: g.In[2] / g.Groups, filters: g.Out[2] / g.Groups}
	l.row = g.Kernel * g.kernelWidth() * l.channels
	l.run, l.runs = l.channels, g.kernelWidth()
	if g.Dilation == 1 && g.Groups == 1 {
		l.run, l.runs = l.channels*g.kernelWidth(), 1
	}
	return l
}

// patches is the number of patches of one image.
func (l *lowering) patches() int { return l.Out[0] * l.Out[1] }

// image is the number of values in the patches of an image, for patches of that number of values.
func (l *lowering) image(values int) int { return l.patches() * values }

// blockValues is the number of patch values per product: they should stay in the second-level cache, but the filters should
// be packed as rarely as possible.
const blockValues = 1 << 17

// block is the number of images in a block, for patches of that number of values.
func (l *lowering) block(values int) int { return max(1, blockValues/l.image(values)) }

// scratch is the largest number of patch values in a block, for a batch of that number of images.
func (l *lowering) scratch(images int) int {
	return min(max(blockValues, l.image(l.row)), images*l.image(l.row))
}

// walk goes over the runs of the patches of one group in an image, of each patch those that hold values [from, to), and
// calls visit with one or more neighbouring runs at a time: the place of the first one's values in the rows and in the image, from
// where the next one is to-from and step values on. Of the values of a run [first, last) those in [low, high) are inside of
// the image, where value q is the image's value at+q; several runs are all inside or all outside.
func (l *lowering) walk(group, from, to int, visit func(row, first, last, at, low, high, runs int)) {
	line, step := l.In[1]*l.In[2], l.step()
	for i := range l.Out[0] {
		for r := from / l.run; r*l.run < to; r++ {
			first, last := max(from-r*l.run, 0), min(to-r*l.run, l.run)
			y := i*l.Stride + r/l.runs*l.Dilation - l.Top
			start := (r%l.runs*l.Dilation-l.Left)*l.In[2] + group*l.channels // of the run in its line
			row := i*l.Out[1]*(to-from) + r*l.run - from
			for j, runs := 0, 1; j < l.Out[1]; j += runs {
				low, high := max(first, -start), min(last, line-start)
				switch {
				case y < 0 || y >= l.In[0]:
					runs = l.Out[1] - j
					low, high = last, last
				case low == first && high == last:
					runs = min(l.Out[1]-j, (line-last-start)/step+1)
				default:
					runs = 1
					low = min(low, last)
					high = max(low, high)
				}
				visit(row, first, last, y*line+start, low, high, runs)
				start += runs * step
				row += runs * (to - from)
			}
		}
	}
}

// step is the distance of neighbouring patches in the image.
func (l *lowering) step() int { return l.strideWidth() * l.In[2] }

// gatherPatches writes values [from, to) of every patch of one group as rows.
func gatherPatches[T Float](l *lowering, rows, image []T, group, from, to int) {
	l.walk(group, from, to, func(row, first, last, at, low, high, runs int) {
		if low == first && high == last {
			copyRuns(rows[row+first:], image[at+first:], last-first, runs, to-from, l.step())
			return
		}
		for range runs {
			into := rows[row+first : row+last]
			clear(into)
			if low < high {
				copy(into[low-first:], image[at+low:at+high])
			}
			row += to - from
		}
	})
}

// copyRuns copies runs of run values, which lie dstStep and srcStep values apart. For short runs calls of copy are too
// slow.
func copyRuns[T Float](dst, src []T, run, runs, dstStep, srcStep int) {
	if run > 16 || run%4 != 0 {
		for i := range runs {
			copy(dst[i*dstStep:][:run], src[i*srcStep:][:run])
		}
		return
	}
	for q := 0; q < run; q += 4 {
		to, from := q, q
		for range runs {
			*(*[4]T)(dst[to:]) = [4]T(src[from:])
			to += dstStep
			from += srcStep
		}
	}
}

// scatterPatches adds rows of patches of one group to an image.
func scatterPatches[T Float](l *lowering, k *vector.Set[T], image, rows []T, group int) {
	l.walk(group, 0, l.row, func(row, _, _, at, low, high, runs int) {
		for i := range runs {
			if low < high {
				into := image[at+i*l.step()+low : at+i*l.step()+high]
				k.Add(into, into, rows[row+i*l.row+low:row+i*l.row+high])
			}
		}
	})
}

// convolve computes the output of images [from, to) of a batch.
func convolve[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, rows []T, from, to int) {
		k, x, w := kernels(), in[0], in[1]
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(l.row)
		for at := from; at < to; at += block {
			n := min(block, to-at)
			for group := range l.Groups {
				for i := range n {
					gatherPatches(&l, rows[i*l.image(l.row):], x[(at+i)*image:(at+i+1)*image], group, 0, l.row)
				}
				k.Gemm(false, false, n*patches, l.filters, l.row, 1, rows, l.row, w[group*l.filters:], l.Out[2],
					0, dst[at*patches*l.Out[2]+group*l.filters:], l.Out[2])
			}
		}
	}
}

// convolveImages computes images [from, to).
func convolveImages[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, rows []T, from, to int) {
		k, y, w := kernels(), in[0], in[1]
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(l.row)
		clear(dst[from*image : to*image])
		for at := from; at < to; at += block {
			n := min(block, to-at)
			for group := range l.Groups {
				k.Gemm(false, true, n*patches, l.row, l.filters, 1, y[at*patches*l.Out[2]+group*l.filters:], l.Out[2],
					w[group*l.filters:], l.Out[2], 0, rows, l.row)
				for i := range n {
					scatterPatches(&l, k, dst[(at+i)*image:(at+i+1)*image], rows[i*l.image(l.row):], group)
				}
			}
		}
	}
}

// convolveGradient computes rows [from, to) of the filters' gradient, one per value of a patch, for all groups.
func convolveGradient[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, rows []T, from, to int) {
		k, x, y := kernels(), in[0], in[1]
		values := to - from
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(values)
		images := len(x) / image
		for at := 0; at < images; at += block {
			n := min(block, images-at)
			beta := T(1)
			if at == 0 {
				beta = 0
			}
			for group := range l.Groups {
				for i := range n {
					gatherPatches(&l, rows[i*l.image(values):], x[(at+i)*image:(at+i+1)*image], group, from, to)
				}
				k.Gemm(true, false, values, l.filters, n*patches, 1, rows, values, y[at*patches*l.Out[2]+group*l.filters:], l.Out[2],
					beta, dst[from*l.Out[2]+group*l.filters:], l.Out[2])
			}
		}
	}
}
