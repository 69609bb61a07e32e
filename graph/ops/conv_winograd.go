package ops

import (
	"fmt"

	"gorgonia.org/tensor"
	vector "tessera/graph/engine/kernel"
)

// winograd computes a convolution whose filters are 2 or 3 strides wide by minimal filtering (Winograd; Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2016): about half of the multiplications.
//
// A cell is the Stride by Stride pixels of an image that every filter sees together. Along one axis an output sees
// taps = Kernel/Stride cells in a row, y(i) = sum over j of x(i+j) w(j). A tile is 5-taps outputs in a row, which see
// four cells; it takes four products, one for each of the points 0, 1, -1 and infinity:
//
//	p0 = (x0-x2) w(0)              p1 = (x1+x2) (sum of w(j))/2
//	p3 = (x3-x1) w(taps-1)         p2 = (x2-x1) (sum of (-1)^j w(j))/2
//	y(i) = p1 + (-1)^i p2, and p0 if i is the tile's first, and p3 if it is its last
//
// A shorter tile does without p3. Both axes together make points*points products of matrices: rows are the tiles of many
// images, columns the filters.
type winograd struct {
	Convolution
	taps          int
	cell          int // values in a cell
	rows, columns tiling
	before        [points * points]int // rows of an image in the matrices before that of a pair of points
	all           int                  // in all of them
}

const points = 4

// sees says of each point how it sees the four cells of a tile: the sum of two or their difference.
var sees = [points]struct {
	one, other int
	minus      bool
}{{0, 2, true}, {1, 2, false}, {2, 1, true}, {3, 1, true}}

// Below that, moving values takes longer than what is saved; of a few images the filters take longer.
const (
	leastCell    = 64
	leastFilters = 64
	leastImages  = 8
)

// valuesAtOnce of cells and products are worked on together: three quarters of a second-level cache.
const valuesAtOnce = 3 << 17

// newWinograd returns nil where patches are to be gathered.
func newWinograd(g Convolution, batch int) *winograd {
	w := &winograd{Convolution: g, taps: g.Kernel / g.Stride, cell: g.Stride * g.Stride * g.In[2]}
	if g.Kernel%g.Stride != 0 || w.taps < 2 || w.taps > 3 || g.Dilation > 1 || g.Groups > 1 || min(g.Out[0], g.Out[1]) < 2 ||
		w.cell < leastCell || g.Out[2] < leastFilters || batch < leastImages {
		return nil
	}
	w.rows, w.columns = newTiling(g.Out[0], w.tile()), newTiling(g.Out[1], w.tile())
	for p := range points {
		for q := range points {
			w.before[p*points+q] = w.all
			w.all += w.rows.tiles(p) * w.columns.tiles(q)
		}
	}
	return w
}

// tile is the number of outputs in a whole tile.
func (w *winograd) tile() int { return points + 1 - w.taps }

// tiling is an axis of outputs in tiles, whole ones first.
type tiling struct {
	start []int // the first output of each tile, and the number of outputs
	whole int
}

// newTiling returns as few tiles of n outputs as possible, of nearly the same size.
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

// filters is the op that makes of the filters what stands in the products: a matrix of cell values and filters for each
// pair of points.
func (w *winograd) filters() *parallel {
	return &parallel{
		name:   fmt.Sprintf("winograd%+v", w.Convolution),
		in:     []tensor.Shape{w.Filters()},
		out:    tensor.Shape{points * points, w.cell, w.Out[2]},
		units:  points * points,
		byUnit: []bool{false},
		work:   float64(points * points * w.taps * w.cell * w.Out[2]),
		f32:    winogradFilters(w, vector.Float32),
		f64:    winogradFilters(w, vector.Float64),
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

// images is the number of images that are multiplied together, of so many.
func (w *winograd) images(batch int) int {
	return min(batch, max(1, valuesAtOnce/(w.all*(w.cell+w.Out[2]))))
}

// scratch is what images at once take: their cells as the products see them, the products, the cells in one row of tiles
// as a point sees them, the outputs as the points of the rows see them, and a line of zeros.
func (w *winograd) scratch(batch int) int {
	return w.images(batch)*w.all*(w.cell+w.Out[2]) + w.Stride*w.line() + w.seen()*w.Out[1]*w.Out[2] + w.In[1]*w.In[2]
}

// work is the multiplications and additions of a batch.
func (w *winograd) work(batch int) float64 {
	return 2 * float64(batch*w.all) * float64(w.cell*w.Out[2])
}

// line is the number of values in the cells of one line of an image.
func (w *winograd) line() int { return (w.Out[1] + w.taps - 1) * w.Stride * w.In[2] }

// seen is the number of points of all tiles of the rows.
func (w *winograd) seen() int { return (points-1)*w.rows.tiles(0) + w.rows.whole }

// convolveWinograd computes the output of images [from, to), of filters as winograd.filters makes them.
func convolveWinograd[T Float](w *winograd, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, filters := kernels(), w.Out[2]
		image, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*filters
		take := func(n int) (taken []T) {
			taken, scratch = scratch[:n], scratch[n:]
			return taken
		}
		lines, seen, zeros := take(w.Stride*w.line()), take(w.seen()*w.Out[1]*filters), take(w.In[1]*w.In[2])
		clear(lines)
		clear(zeros)
		for at := from; at < to; at += w.images(to - from) {
			n := min(w.images(to-from), to-at)
			cells, products := scratch[:n*w.all*w.cell], scratch[n*w.all*w.cell:][:n*w.all*filters]
			for i := range n {
				seeImage(w, k, cells, in[0][(at+i)*image:][:image], i, n, lines, zeros)
			}
			for pair := range points * points {
				first, m := n*w.before[pair], n*w.rows.tiles(pair/points)*w.columns.tiles(pair%points)
				if m > 0 {
					k.Gemm(false, false, m, filters, w.cell, 1, cells[first*w.cell:], w.cell, in[1][pair*w.cell*filters:], filters,
						0, products[first*filters:], filters)
				}
			}
			for i := range n {
				joinImage(w, k, dst[(at+i)*out:][:out], products, i, n, seen)
			}
		}
	}
}

// row is the row of the i-th of n images in all matrices: for points p and q, of their tiles s and t.
func (w *winograd) row(p, q, s, t, i, n int) int {
	return (w.before[p*points+q]+s*w.columns.tiles(q)+t)*n + i
}

// seeImage writes the cells of an image as the points of both axes see them.
func seeImage[T Float](w *winograd, k *vector.Set[T], cells, image []T, i, n int, lines, zeros []T) {
	length, padding, run := w.line(), w.Left*w.In[2], w.cell/w.Stride
	width := w.In[1] * w.In[2]
	inside := min(width, length-padding)
	if inside <= 0 { // no filter sees any of the image
		clear(cells)
		return
	}
	line := func(y int) []T {
		if y < 0 || y >= w.In[0] {
			return zeros[:inside]
		}
		return image[y*width:][:inside]
	}
	for p := range points {
		rows, see := &sees[p], sight(k, p)
		for s := range w.rows.tiles(p) {
			for l := range w.Stride {
				y := w.rows.start[s]*w.Stride + l - w.Top
				see(lines[l*length+padding:][:inside], line(y+rows.one*w.Stride), line(y+rows.other*w.Stride))
			}
			for q := range points {
				columns, see := &sees[q], sight(k, q)
				at, step := w.row(p, q, s, 0, i, n)*w.cell, n*w.cell
				for t := range w.columns.tiles(q) {
					one, other := (w.columns.start[t]+columns.one)*run, (w.columns.start[t]+columns.other)*run
					for l := range w.Stride {
						x := lines[l*length:][:length]
						see(cells[at+l*run:][:run], x[one:], x[other:])
					}
					at += step
				}
			}
		}
	}
}

// sight returns how point p sees two cells.
func sight[T Float](k *vector.Set[T], p int) vector.Binary[T] {
	if sees[p].minus {
		return k.Sub
	}
	return k.Add
}

// joinImage computes an image's output from the products.
func joinImage[T Float](w *winograd, k *vector.Set[T], dst, products []T, i, n int, seen []T) {
	filters, line := w.Out[2], w.Out[1]*w.Out[2]
	var of [points][]T
	for p := range points {
		for s := range w.rows.tiles(p) {
			for t := range len(w.columns.start) - 1 {
				for q := range points {
					if t < w.columns.tiles(q) {
						of[q] = products[w.row(p, q, s, t, i, n)*filters:][:filters]
					}
				}
				for j := w.columns.start[t]; j < w.columns.start[t+1]; j++ {
					join(w, k, seen[(p*w.rows.tiles(0)+s)*line+j*filters:][:filters], of, j-w.columns.start[t])
				}
			}
		}
	}
	for s := range len(w.rows.start) - 1 {
		for p := range points {
			if s < w.rows.tiles(p) {
				of[p] = seen[(p*w.rows.tiles(0)+s)*line:][:line]
			}
		}
		for j := w.rows.start[s]; j < w.rows.start[s+1]; j++ {
			join(w, k, dst[j*line:][:line], of, j-w.rows.start[s])
		}
	}
}

// join computes output i of a tile from its products of the points.
func join[T Float](w *winograd, k *vector.Set[T], dst []T, of [points][]T, i int) {
	if i%2 == 0 {
		k.Add(dst, of[1], of[2])
	} else {
		k.Sub(dst, of[1], of[2])
	}
	if i == 0 {
		k.Add(dst, dst, of[0])
	}
	if i == w.tile()-1 {
		k.Add(dst, dst, of[points-1])
	}
}
