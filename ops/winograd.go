package ops

import (
	"gorgonia.org/tensor"
	vector "tessera/kernel"
)

// winograd computes a convolution whose filters are 2 or 3 strides wide by minimal filtering (Winograd; Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2016): about half of the multiplications.
//
// A cell is a block of Stride by Stride pixels of an image. Along one axis an output depends on taps = Kernel/Stride
// consecutive cells, y(i) = sum over j of x(i+j) w(j). A tile is 5-taps consecutive outputs, which depend on four cells. It
// needs four products, one for each of the points 0, 1, -1 and infinity:
//
//	p0 = (x0-x2) w(0)              p1 = (x1+x2) (sum of w(j))/2
//	p3 = (x3-x1) w(taps-1)         p2 = (x2-x1) (sum of (-1)^j w(j))/2
//	y(i) = p1 + (-1)^i p2, and p0 if i is the tile's first, and p3 if it is its last
//
// A shorter tile does not need p3. Both axes together give points*points matrix products: rows are the tiles of many
// images, columns the filters.
type winograd struct {
	Convolution
	taps          int
	cell          int // values in a cell
	rows, columns tiling
}

const points = 4

// sights says of each point how it sees the four cells of a tile: the sum of two or their difference.
var sights = [points]struct {
	one, other int
	minus      bool
}{{0, 2, true}, {1, 2, false}, {2, 1, true}, {3, 1, true}}

// newWinograd returns nil for convolutions that this method cannot compute.
func newWinograd(g Convolution) *winograd {
	w := &winograd{Convolution: g, taps: g.Kernel / g.Stride, cell: g.Stride * g.Stride * g.In[2]}
	if g.Kernel%g.Stride != 0 || w.taps < 2 || w.taps > 3 || g.Dilation > 1 || g.Groups > 1 || g.kernelWidth() != g.Kernel || g.strideWidth() != g.Stride {
		return nil
	}
	if min(g.Out[0], g.Out[1]) < 2 { // with 2 taps a tile of 1 output has no third cell, which takeCells would look at
		return nil
	}
	w.rows, w.columns = newTiling(g.Out[0], w.tile()), newTiling(g.Out[1], w.tile())
	return w
}

// With fewer channels or filters, moving values takes longer than the method saves. minSavedProducts is the break-even of a batch, in
// products of a cell and the filters: the transform of the filters costs the same for any batch.
const (
	minCell          = 64
	minFilters       = 64
	minSavedProducts = 768
)

// pays reports whether this method is faster for a batch than im2col.
func (w *winograd) pays(batch int) bool {
	saved := batch * (w.Out[0]*w.Out[1]*w.taps*w.taps - w.rows.products()*w.columns.products())
	return w.cell >= minCell && w.Out[2] >= minFilters && saved >= minSavedProducts
}

// valuesAtOnce of cells and products are worked on together: a third of a second-level cache, beside the images and the filters
// of a point.
const valuesAtOnce = 5 << 15

// most is the maximum number of images per product.
func (w *winograd) most() int { return max(1, valuesAtOnce/w.values()) }

// values is the number of values in the cells and products of an image, for one point of the rows.
func (w *winograd) values() int { return w.rows.tiles(0) * w.columns.products() * (w.cell + w.Out[2]) }

// tile is the number of outputs in a whole tile.
func (w *winograd) tile() int { return points + 1 - w.taps }

// tiling is an axis of outputs in tiles, whole ones first.
type tiling struct {
	start []int // the first output of each tile, and the number of outputs
	whole int
}

// newTiling returns as few tiles of n outputs as possible, of nearly the same size: none of 1 output but for n = 1 or tiles of 2.
func newTiling(n, tile int) tiling {
	count := (n + tile - 1) / tile
	t := tiling{start: []int{0}}
	for i, at := 0, 0; i < count; i++ {
		size := (n - at + count - i - 1) / (count - i)
		if size == tile {
			t.whole++
		}
		at += size
		t.start = append(t.start, at)
	}
	return t
}

// tiles is the number of tiles that take a product for point p.
func (t tiling) tiles(p int) int {
	if p == points-1 {
		return t.whole
	}
	return len(t.start) - 1
}

// before is the number of products of all tiles for the points before p.
func (t tiling) before(p int) int { return p * t.tiles(0) }

// products is the number of products of all tiles.
func (t tiling) products() int { return (points-1)*t.tiles(0) + t.whole }

// WinogradOp is the spec of the op that prepares the filters of a convolution: what [ConvolveOp] reads in their place.
type WinogradOp Convolution

// filters is the op that makes of the filters what stands in the products: a matrix of cell values and filters for each
// pair of points.
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

// tap is what point p sees of tap j.
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
		k, run := kernels(), w.cell/w.Stride*w.Out[2] // a line of a cell, for all filters
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

// filtersAtOnce values of filters stay in the first-level cache.
const filtersAtOnce = 1024

// scratch is what most images take: for one point of the rows their cells, as the points of the columns see them, and the
// products; then the cells of one row of tiles, a line of outputs and a line of zeros.
func (w *winograd) scratch(batch int) int {
	return min(batch, w.most())*w.values() + w.Stride*w.line() + w.Out[1]*w.Out[2] + w.In[1]*w.In[2]
}

// work is the multiplications and additions of a batch.
func (w *winograd) work(batch int) float64 {
	return 2 * float64(batch*w.rows.products()*w.columns.products()) * float64(w.cell*w.Out[2])
}

// line is the number of values in the cells of one line of an image.
func (w *winograd) line() int { return (w.Out[1] + w.taps - 1) * w.Stride * w.In[2] }

// inTurn are the points of the rows in the order in which they are computed: the first one is part of every output.
var inTurn = [points]int{1, 2, 0, 3}

// convolveWinograd computes the output of images [from, to), of filters as winograd.filters makes them.
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

// winogradBatch is n images on their way through one point of the rows.
type winogradBatch[T Float] struct {
	*winograd
	k               *vector.Set[T]
	n               int
	cells, products []T
	lines           []T // the cells of a row of tiles, as the point sees them; what of them lies beyond the image is 0
	half            []T // a line of outputs, as the point sees them
	zeros           []T
}

// row is the row of image i in the matrices of a point of the rows, for point q of the columns and tiles s and t.
func (b *winogradBatch[T]) row(p, q, s, t, i int) int {
	return (b.rows.tiles(p)*b.columns.before(q)+s*b.columns.tiles(q)+t)*b.n + i
}

// multiply computes the products of point p of the rows.
func (b *winogradBatch[T]) multiply(p int, filters []T) {
	for q := range points {
		first, m := b.row(p, q, 0, 0, 0), b.n*b.rows.tiles(p)*b.columns.tiles(q)
		if m > 0 {
			b.k.Gemm(false, false, m, b.Out[2], b.cell, 1, b.cells[first*b.cell:], b.cell,
				filters[(p*points+q)*b.cell*b.Out[2]:], b.Out[2], 0, b.products[first*b.Out[2]:], b.Out[2])
		}
	}
}

// takeCells writes the cells of image i as point p of the rows and the points of the columns see them.
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

// combination is how a point sees two cells.
func combination[T Float](k *vector.Set[T], minus bool) vector.Binary[T] {
	if minus {
		return k.Sub
	}
	return k.Add
}

// addProducts adds to the output of image i what point p of the rows gives.
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
