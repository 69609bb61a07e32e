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

// Below leastCell and leastFilters, moving values takes longer than what is saved. leastSaved is how many products of a cell
// and filters a batch has to be spared: what is made of the filters takes as long for few places and images as for many.
const (
	leastCell    = 64
	leastFilters = 64
	leastSaved   = 768
)

// pays reports whether this method is faster for a batch than im2col.
func (w *winograd) pays(batch int) bool {
	saved := batch * (w.Out[0]*w.Out[1]*w.taps*w.taps - w.rows.products()*w.columns.products())
	return w.cell >= leastCell && w.Out[2] >= leastFilters && saved >= leastSaved
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
