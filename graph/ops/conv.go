package ops

import (
	"cmp"
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// Convolution is the geometry of a two-dimensional convolution (a cross-correlation, as usual in deep learning) of images
// whose channels come last:
//
//	y(i,j,f) = sum over u,v,c of x(i Stride + u Dilation - Top, j Stride + v Dilation - Left, c) w(u,v,c,f)
//
// for 0 <= u,v < Kernel, with x = 0 outside of the image. KernelWidth and StrideWidth, if they are not 0, replace Kernel and
// Stride along the width. With Groups > 1 channels and filters are split into equal groups; a filter reads only the channels
// of its group, and c is the index within the group.
//
// [Convolution.Convolve], [Convolution.Images] and [Convolution.Gradient] are linear in each input. The derivatives of each
// are the other two, so they can be differentiated any number of times.
type Convolution struct {
	In       [3]int // height, width, channels of an image
	Out      [3]int // height, width, filters
	Kernel   int
	Stride   int
	Dilation int
	Groups   int
	Top      int // rows of padding above; Out determines the padding below
	Left     int // columns of padding to the left; Out determines the padding to the right

	KernelWidth int // width of a filter; 0 for Kernel
	StrideWidth int // stride between columns; 0 for Stride
}

// kernelWidth returns the width of a filter in pixels.
func (g Convolution) kernelWidth() int { return cmp.Or(g.KernelWidth, g.Kernel) }

// strideWidth returns the stride between columns.
func (g Convolution) strideWidth() int { return cmp.Or(g.StrideWidth, g.Stride) }

// ConvolveOp is the spec of [Convolution.Convolve], ConvolveImagesOp of [Convolution.Images] (the transposed convolution),
// convolveGradientOp of [Convolution.Gradient], with the same inputs and outputs.
type (
	ConvolveOp         Convolution
	ConvolveImagesOp   Convolution
	convolveGradientOp Convolution
)

// Filters returns the shape of w: (height of a filter, width of a filter, channels of one group, filters).
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

// Gradient returns the derivative of [Convolution.Convolve] with respect to the filters, given images x and the
// gradient y of the output.
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
		Units:    l.row, // one unit per value of a patch: its gradient for all filters
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

// both returns a function that combines a with the result b of a second call: it returns a and b, and the errors of both
// calls.
func both(a *gorgonia.Node, first error) func(b *gorgonia.Node, err error) (gorgonia.Nodes, error) {
	return func(b *gorgonia.Node, second error) (gorgonia.Nodes, error) {
		return gorgonia.Nodes{a, b}, errors.Join(first, second)
	}
}

// fits returns an error if the shapes of the images and, unless nil, of the filters do not match the geometry.
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

// work returns the number of multiplications and additions for a batch of the given size.
func (g Convolution) work(batch int) float64 {
	return 2 * float64(batch*g.Out[0]*g.Out[1]) * float64(g.Kernel*g.kernelWidth()*g.In[2]/g.Groups*g.Out[2])
}

// lowering turns a convolution into a matrix product (im2col). Each row of the left matrix is the patch of the image
// that the filters cover at one pixel of the output. A patch consists of runs of values that are contiguous in the
// image. Values outside the image are 0.
type lowering struct {
	Convolution
	channels int // channels of one group
	filters  int // filters of one group
	row      int // values in a patch of one group: height * width of a filter * channels
	run      int // values in a run
	runs     int // runs in one row of a filter: 1 if neighbouring columns are contiguous, else the number of columns
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

// patches returns the number of patches of one image.
func (l *lowering) patches() int { return l.Out[0] * l.Out[1] }

// image returns the number of values in all patches of an image; values is the number of values per patch.
func (l *lowering) image(values int) int { return l.patches() * values }

// blockValues is the number of patch values per matrix product. The values should fit into the second-level cache.
// Smaller products would pack the filters more often.
const blockValues = 1 << 17

// block returns the number of images per matrix product; values is the number of values per patch.
func (l *lowering) block(values int) int { return max(1, blockValues/l.image(values)) }

// scratch returns the maximum number of patch values in a block; images is the size of the batch.
func (l *lowering) scratch(images int) int {
	return min(max(blockValues, l.image(l.row)), images*l.image(l.row))
}

// walk iterates over the runs with values [from, to) of the patches of one group in an image. It calls visit for one or
// more neighbouring runs at a time. row and at are the positions of the first run in the rows and in the image. Each
// further run starts to-from values later in the rows and step values later in the image. A run has the values [first,
// last), of which [low, high) lie inside the image; value q of the run is value at+q of the image. Several runs are
// passed together only if all are inside or all are outside the image.
func (l *lowering) walk(group, from, to int, visit func(row, first, last, at, low, high, runs int)) {
	line, step := l.In[1]*l.In[2], l.step()
	for i := range l.Out[0] {
		for r := from / l.run; r*l.run < to; r++ {
			first, last := max(from-r*l.run, 0), min(to-r*l.run, l.run)
			y := i*l.Stride + r/l.runs*l.Dilation - l.Top
			start := (r%l.runs*l.Dilation-l.Left)*l.In[2] + group*l.channels // position of the run in its row of the filter
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

// step returns the number of values between the starts of neighbouring patches in the image.
func (l *lowering) step() int { return l.strideWidth() * l.In[2] }

// gatherPatches copies values [from, to) of every patch of one group into rows.
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

// copyRuns copies several runs of equal length run. The runs start dstStep values apart in dst and srcStep values apart
// in src. It avoids the cost of calling copy for short runs.
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

// convolve returns the kernel that computes the outputs of images [from, to) of a batch.
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

// convolveImages returns the kernel that computes images [from, to).
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

// convolveGradient returns the kernel that computes rows [from, to) of the filters' gradient, one per value of a patch.
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

// winograd computes a convolution by minimal filtering (Winograd; Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", 2016). The filters must be 2 or 3 strides wide. It needs about half of the multiplications.
//
// A cell is a block of Stride by Stride pixels of an image. Along one axis an output depends on taps = Kernel/Stride
// consecutive cells, y(i) = sum over j of x(i+j) w(j). A tile is 5-taps consecutive outputs, which depend on four
// cells. A tile needs four products, one for each of the points 0, 1, -1 and infinity:
//
//	p0 = (x0-x2) w(0)              p1 = (x1+x2) (sum of w(j))/2
//	p3 = (x3-x1) w(taps-1)         p2 = (x2-x1) (sum of (-1)^j w(j))/2
//	y(i) = p1 + (-1)^i p2, plus p0 for the first and p3 for the last i of the tile
//
// A shorter tile does not need p3. In two dimensions there are points*points matrix products, one for each pair of
// points. Rows of the left matrix are the tiles of many images, columns of the right matrix are the filters.
type winograd struct {
	Convolution
	taps          int
	cell          int // values in a cell
	rows, columns tiling
}

const points = 4

// sights defines the input transform. For each point it is the sum or the difference of two of the four cells of a
// tile.
var sights = [points]struct {
	one, other int
	minus      bool
}{{0, 2, true}, {1, 2, false}, {2, 1, true}, {3, 1, true}}

// newWinograd returns the method for g, or nil if it does not apply to g.
func newWinograd(g Convolution) *winograd {
	w := &winograd{Convolution: g, taps: g.Kernel / g.Stride, cell: g.Stride * g.Stride * g.In[2]}
	if g.Kernel%g.Stride != 0 || w.taps < 2 || w.taps > 3 || g.Dilation > 1 || g.Groups > 1 || g.kernelWidth() != g.Kernel || g.strideWidth() != g.Stride {
		return nil
	}
	if min(g.Out[0], g.Out[1]) < 2 { // with 2 taps, takeCells would read the third cell of a tile of 1 output, which does not exist
		return nil
	}
	w.rows, w.columns = newTiling(g.Out[0], w.tile()), newTiling(g.Out[1], w.tile())
	return w
}

// Minimum sizes for which the method is worthwhile. With few channels or filters, copying values takes longer than the
// method saves. minSavedProducts is the break-even point of a batch: the number of saved products of a cell and the
// filters that pays for the transform of the filters, whose cost does not depend on the batch.
const (
	minCell          = 64
	minFilters       = 64
	minSavedProducts = 768
)

// pays reports whether this method is faster than im2col for a batch of the given size.
func (w *winograd) pays(batch int) bool {
	saved := batch * (w.Out[0]*w.Out[1]*w.taps*w.taps - w.rows.products()*w.columns.products())
	return w.cell >= minCell && w.Out[2] >= minFilters && saved >= minSavedProducts
}

// valuesAtOnce is the number of values of cells and products that are processed together. They occupy a third of the
// second-level cache. The rest holds the images and the filters of a point.
const valuesAtOnce = 5 << 15

// most returns the maximum number of images in one matrix product.
func (w *winograd) most() int { return max(1, valuesAtOnce/w.values()) }

// values returns the number of values in the cells and products of one image for one vertical point.
func (w *winograd) values() int { return w.rows.tiles(0) * w.columns.products() * (w.cell + w.Out[2]) }

// tile returns the number of outputs in a full tile.
func (w *winograd) tile() int { return points + 1 - w.taps }

// tiling divides an axis of outputs into tiles, full tiles first.
type tiling struct {
	start []int // first output of each tile, followed by the number of outputs
	full  int   // number of full tiles
}

// newTiling divides n outputs into as few tiles as possible, of nearly equal size. A tile of 1 output occurs only if n
// = 1 or a full tile has at most 2 outputs.
func newTiling(n, tile int) tiling {
	count := (n + tile - 1) / tile
	t := tiling{start: []int{0}}
	for i, at := 0, 0; i < count; i++ {
		size := (n - at + count - i - 1) / (count - i)
		if size == tile {
			t.full++
		}
		at += size
		t.start = append(t.start, at)
	}
	return t
}

// tiles returns the number of tiles that need a product for point p.
func (t tiling) tiles(p int) int {
	if p == points-1 {
		return t.full
	}
	return len(t.start) - 1
}

// before returns the number of products, over all tiles, for the points before p.
func (t tiling) before(p int) int { return p * t.tiles(0) }

// products returns the number of products of all tiles and points.
func (t tiling) products() int { return (points-1)*t.tiles(0) + t.full }

// WinogradOp is the spec of the op that transforms the filters of a convolution. [ConvolveOp] then reads the
// transformed filters.
type WinogradOp Convolution

// filters returns the op that transforms the filters: the result is a matrix (cell values, filters) for each pair of points.
func (w *winograd) filters() *Unitwise {
	return &Unitwise{
		Spec:    WinogradOp(w.Convolution),
		Out:     tensor.Shape{points * points, w.cell, w.Out[2]},
		Units:   points * points,
		ByUnit:  []bool{false},
		Work:    float64(points * points * w.taps * w.cell * w.Out[2]),
		Float32: winogradFilters(w, vector.Float32),
		Float64: winogradFilters(w, vector.Float64),
	}
}

// tap returns the coefficient of tap j in the filter transform of point p.
func (w *winograd) tap(p, j int) float64 {
	switch {
	case p == 1, p == 2 && j%2 == 0:
		return 0.5
	case p == 2:
		return -0.5
	case p == 0 && j == 0, p == points-1 && j == w.taps-1:
		return 1
	}
	return 0
}

func winogradFilters[T Float](w *winograd, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k, run := kernels(), w.cell/w.Stride*w.Out[2] // a row of pixels of a cell, for all filters
		for unit := from; unit < to; unit++ {
			for line := range w.Stride {
				for at := 0; at < run; at += filtersAtOnce {
					into := dst[(unit*w.Stride+line)*run+at:][:min(filtersAtOnce, run-at)]
					written := false
					for i := range w.taps {
						for j := range w.taps {
							c := w.tap(unit/points, i) * w.tap(unit%points, j)
							tap := in[0][((i*w.Stride+line)*w.taps+j)*run+at:]
							switch {
							case c == 0:
							case written:
								k.AddScaled(into, into, tap, T(c))
							default:
								k.MulScalar(into, tap, T(c))
								written = true
							}
						}
					}
				}
			}
		}
	}
}

// filtersAtOnce is the number of filter values that fit into the first-level cache.
const filtersAtOnce = 1024

// scratch returns the number of values in the workspace. It holds the transformed cells and the products of all images
// in one matrix product, for one vertical point, then the cells of one row of tiles, a row of outputs and a row of
// zeros.
func (w *winograd) scratch(batch int) int {
	return min(batch, w.most())*w.values() + w.Stride*w.line() + w.Out[1]*w.Out[2] + w.In[1]*w.In[2]
}

// work returns the number of multiplications and additions for a batch.
func (w *winograd) work(batch int) float64 {
	return 2 * float64(batch*w.rows.products()*w.columns.products()) * float64(w.cell*w.Out[2])
}

// line returns the number of values in the cells of one row of pixels of an image.
func (w *winograd) line() int { return (w.Out[1] + w.taps - 1) * w.Stride * w.In[2] }

// inTurn lists the vertical points in the order of computation. The first point contributes to every output.
var inTurn = [points]int{1, 2, 0, 3}

// convolveWinograd returns the kernel that computes the outputs of images [from, to) from the transformed filters.
func convolveWinograd[T Float](w *winograd, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		if from == to {
			return
		}
		take := func(n int) (taken []T) {
			taken, scratch = scratch[:n], scratch[n:]
			return taken
		}
		b := winogradBatch[T]{winograd: w, k: kernels(), lines: take(w.Stride * w.line()), half: take(w.Out[1] * w.Out[2]), zeros: take(w.In[1] * w.In[2])}
		clear(b.lines)
		clear(b.zeros)
		image, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*w.Out[2]
		batches := (to - from + w.most() - 1) / w.most()
		for batch := range batches {
			first, last := from+(to-from)*batch/batches, from+(to-from)*(batch+1)/batches
			b.n = last - first
			values := b.n * w.rows.tiles(0) * w.columns.products()
			b.cells, b.products = scratch[:values*w.cell], scratch[values*w.cell:]
			for _, p := range inTurn {
				for i := range b.n {
					b.takeCells(p, i, in[0][(first+i)*image:][:image])
				}
				b.multiply(p, in[1])
				for i := range b.n {
					b.addProducts(p, i, dst[(first+i)*out:][:out])
				}
			}
		}
	}
}

// winogradBatch is the workspace for n images at one of the four points along the vertical axis; see [winograd].
type winogradBatch[T Float] struct {
	*winograd
	k               *vector.Set[T]
	n               int
	cells, products []T
	lines           []T // transformed cells of a row of tiles; 0 outside the image
	half            []T // a row of outputs, transformed back along the columns only
	zeros           []T
}

// row returns the row of image i in the matrices of the vertical point p. q is the horizontal point, s and t are the
// tiles.
func (b *winogradBatch[T]) row(p, q, s, t, i int) int {
	return (b.rows.tiles(p)*b.columns.before(q)+s*b.columns.tiles(q)+t)*b.n + i
}

// multiply computes the products for the vertical point p.
func (b *winogradBatch[T]) multiply(p int, filters []T) {
	for q := range points {
		first, m := b.row(p, q, 0, 0, 0), b.n*b.rows.tiles(p)*b.columns.tiles(q)
		if m > 0 {
			b.k.Gemm(false, false, m, b.Out[2], b.cell, 1, b.cells[first*b.cell:], b.cell,
				filters[(p*points+q)*b.cell*b.Out[2]:], b.Out[2], 0, b.products[first*b.Out[2]:], b.Out[2])
		}
	}
}

// takeCells writes the transformed cells of image i for the vertical point p and all horizontal points.
func (b *winogradBatch[T]) takeCells(p, i int, image []T) {
	length, width, run := b.line(), b.In[1]*b.In[2], b.cell/b.Stride
	padding := min(b.Left*b.In[2], length)
	inside := min(width, length-padding)
	line := func(y int) []T {
		if y < 0 || y >= b.In[0] {
			return b.zeros[:inside]
		}
		return image[y*width:][:inside]
	}
	down := sights[p]
	combine := combination(b.k, down.minus)
	for s := range b.rows.tiles(p) {
		for l := range b.Stride {
			y := b.rows.start[s]*b.Stride + l - b.Top
			combine(b.lines[l*length+padding:][:inside], line(y+down.one*b.Stride), line(y+down.other*b.Stride))
		}
		for q, along := range sights {
			combine := combination(b.k, along.minus)
			for t := range b.columns.tiles(q) {
				into := b.cells[b.row(p, q, s, t, i)*b.cell:][:b.cell]
				one, other := (b.columns.start[t]+along.one)*run, (b.columns.start[t]+along.other)*run
				for l := range b.Stride {
					x := b.lines[l*length:][:length]
					combine(into[l*run:][:run], x[one:][:run], x[other:][:run])
				}
			}
		}
	}
}

// combination returns the kernel that subtracts two cells if minus is true, and adds them otherwise.
func combination[T Float](k *vector.Set[T], minus bool) vector.Binary[T] {
	if minus {
		return k.Sub
	}
	return k.Add
}

// addProducts adds the contribution of the vertical point p to the output of image i.
func (b *winogradBatch[T]) addProducts(p, i int, dst []T) {
	filters, line, last := b.Out[2], b.Out[1]*b.Out[2], b.tile()-1
	for s := range b.rows.tiles(p) {
		for t := range len(b.columns.start) - 1 {
			of := func(q int) []T { return b.products[b.row(p, q, s, t, i)*filters:][:filters] }
			for j := b.columns.start[t]; j < b.columns.start[t+1]; j++ {
				into, at := b.half[j*filters:][:filters], j-b.columns.start[t]
				combination(b.k, at%2 == 1)(into, of(1), of(2))
				if at == 0 {
					b.k.Add(into, into, of(0))
				}
				if at == last {
					b.k.Add(into, into, of(points-1))
				}
			}
		}
		for j := b.rows.start[s]; j < b.rows.start[s+1]; j++ {
			into, at := dst[j*line:][:line], j-b.rows.start[s]
			switch {
			case p == 1:
				copy(into, b.half)
			case p == 2:
				combination(b.k, at%2 == 1)(into, into, b.half)
			case p == 0 && at == 0, p == points-1 && at == last:
				b.k.Add(into, into, b.half)
			}
		}
	}
}
