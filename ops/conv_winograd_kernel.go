package ops

import vector "tessera/kernel"

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
