package ops

import vector "tessera/graph/engine/kernel"

// scratch is what most images take: their cells as the products see them, the products, the cells in one row of tiles as a
// point sees them, an image's outputs as the points of the rows see them, and a line of zeros.
func (w *winograd) scratch(batch int) int {
	return min(batch, w.most())*w.products*(w.cell+w.Out[2]) + w.Stride*w.line() + w.rowPoints()*w.Out[1]*w.Out[2] + w.In[1]*w.In[2]
}

// work is the multiplications and additions of a batch.
func (w *winograd) work(batch int) float64 {
	return 2 * float64(batch*w.products) * float64(w.cell*w.Out[2])
}

// line is the number of values in the cells of one line of an image.
func (w *winograd) line() int { return (w.Out[1] + w.taps - 1) * w.Stride * w.In[2] }

// rowPoints is the number of points of all tiles of the rows.
func (w *winograd) rowPoints() int { return (points-1)*w.rows.tiles(0) + w.rows.whole }

// convolveWinograd computes the output of images [from, to), of filters as winograd.filters makes them.
func convolveWinograd[T Float](w *winograd, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		if from == to {
			return
		}
		k, filters := kernels(), w.Out[2]
		image, out := w.In[0]*w.In[1]*w.In[2], w.Out[0]*w.Out[1]*filters
		take := func(n int) (taken []T) {
			taken, scratch = scratch[:n], scratch[n:]
			return taken
		}
		lines, half, zeros := take(w.Stride*w.line()), take(w.rowPoints()*w.Out[1]*filters), take(w.In[1]*w.In[2])
		clear(lines)
		clear(zeros)
		parts := (to - from + w.most() - 1) / w.most()
		for part := range parts {
			at := from + (to-from)*part/parts
			n := from + (to-from)*(part+1)/parts - at
			cells, products := scratch[:n*w.products*w.cell], scratch[n*w.products*w.cell:][:n*w.products*filters]
			for i := range n {
				takeCells(w, k, cells, in[0][(at+i)*image:][:image], i, n, lines, zeros)
			}
			for pair := range points * points {
				first, m := n*w.before[pair], n*w.rows.tiles(pair/points)*w.columns.tiles(pair%points)
				if m > 0 {
					k.Gemm(false, false, m, filters, w.cell, 1, cells[first*w.cell:], w.cell, in[1][pair*w.cell*filters:], filters,
						0, products[first*filters:], filters)
				}
			}
			for i := range n {
				joinProducts(w, k, dst[(at+i)*out:][:out], products, i, n, half)
			}
		}
	}
}

// row is the row of the i-th of n images in all matrices: for points p and q, of their tiles s and t.
func (w *winograd) row(p, q, s, t, i, n int) int {
	return (w.before[p*points+q]+s*w.columns.tiles(q)+t)*n + i
}

// takeCells writes the cells of an image as the points of both axes see them. What of lines lies beyond the image is 0.
func takeCells[T Float](w *winograd, k *vector.Set[T], cells, image []T, i, n int, lines, zeros []T) {
	length, width, run := w.line(), w.In[1]*w.In[2], w.cell/w.Stride
	padding := min(w.Left*w.In[2], length)
	inside := min(width, length-padding)
	line := func(y int) []T {
		if y < 0 || y >= w.In[0] {
			return zeros[:inside]
		}
		return image[y*width:][:inside]
	}
	for p, down := range sights {
		combine := combination(k, down.minus)
		for s := range w.rows.tiles(p) {
			for l := range w.Stride {
				y := w.rows.start[s]*w.Stride + l - w.Top
				combine(lines[l*length+padding:][:inside], line(y+down.one*w.Stride), line(y+down.other*w.Stride))
			}
			for q, along := range sights {
				combine := combination(k, along.minus)
				at, step := w.row(p, q, s, 0, i, n)*w.cell, n*w.cell
				for t := range w.columns.tiles(q) {
					one, other := (w.columns.start[t]+along.one)*run, (w.columns.start[t]+along.other)*run
					for l := range w.Stride {
						x := lines[l*length:][:length]
						combine(cells[at+l*run:][:run], x[one:][:run], x[other:][:run])
					}
					at += step
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

// joinProducts computes an image's output: half way, lines of outputs as the points of the rows see them. Of a short tile
// of[points-1] is another tile's; join leaves it.
func joinProducts[T Float](w *winograd, k *vector.Set[T], dst, products []T, i, n int, half []T) {
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
					join(w, k, half[(p*w.rows.tiles(0)+s)*line+j*filters:][:filters], of, j-w.columns.start[t])
				}
			}
		}
	}
	for s := range len(w.rows.start) - 1 {
		for p := range points {
			if s < w.rows.tiles(p) {
				of[p] = half[(p*w.rows.tiles(0)+s)*line:][:line]
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
