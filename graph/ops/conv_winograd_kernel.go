package ops

import vector "tessera/graph/engine/kernel"

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
