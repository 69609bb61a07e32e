package ops

import vector "tessera/kernel"

// view is a place of the output and the part of the image in its window: rows [top, bottom) and columns [left, right).
type view struct{ place, top, bottom, left, right int }

// windows calls f for every place of an image's output, in reading order.
func (g Pooling) windows(f func(v view)) {
	for i := range g.Out[0] {
		top := i*g.Stride - g.Top
		for j := range g.Out[1] {
			left := j*g.Stride - g.Left
			f(view{i*g.Out[1] + j, max(top, 0), min(top+g.Kernel, g.In[0]), max(left, 0), min(left+g.Kernel, g.In[1])})
		}
	}
}

// pixels calls f for every pixel of a view, in reading order.
func (g Pooling) pixels(v view, f func(pixel int)) {
	for y := v.top; y < v.bottom; y++ {
		for x := v.left; x < v.right; x++ {
			f(y*g.In[1] + x)
		}
	}
}

// seen is the number of those pixels.
func (v view) seen() int { return (v.bottom - v.top) * (v.right - v.left) }

// image is the i-th of images of that shape.
func image[T Float](images []T, i int, shape [3]int) []T {
	n := shape[0] * shape[1] * shape[2]
	return images[i*n : (i+1)*n]
}

func poolSum[T Float](g Pooling, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k, c := kernels(), g.In[2]
		for b := from; b < to; b++ {
			x, y := image(in[0], b, g.In), image(dst, b, g.Out)
			clear(y)
			g.windows(func(w view) {
				sum := y[w.place*c : (w.place+1)*c]
				g.pixels(w, func(p int) { k.Add(sum, sum, x[p*c:]) })
				if g.Mean {
					k.MulScalar(sum, sum, 1/T(w.seen()))
				}
			})
		}
	}
}

func poolSpread[T Float](g Pooling, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, c := kernels(), g.In[2]
		for b := from; b < to; b++ {
			y, x := image(in[0], b, g.Out), image(dst, b, g.In)
			clear(x)
			g.windows(func(w view) {
				value := y[w.place*c : (w.place+1)*c]
				if g.Mean {
					value = scratch[:c]
					k.MulScalar(value, y[w.place*c:], 1/T(w.seen()))
				}
				g.pixels(w, func(p int) { k.Add(x[p*c:(p+1)*c], x[p*c:], value) })
			})
		}
	}
}

func poolMax[T Float](g Pooling, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k, c := kernels(), g.In[2]
		for b := from; b < to; b++ {
			x, y := image(in[0], b, g.In), image(dst, b, g.Out)
			g.windows(func(w view) {
				largest := y[w.place*c : (w.place+1)*c]
				copy(largest, x[(w.top*g.In[1]+w.left)*c:])
				g.pixels(w, func(p int) { k.Max(largest, largest, x[p*c:]) })
			})
		}
	}
}

func poolWinner[T Float](g Pooling) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		c := g.In[2]
		largest := scratch[:c]
		for b := from; b < to; b++ {
			x, y := image(in[0], b, g.In), image(dst, b, g.Out)
			g.windows(func(w view) {
				winner := y[w.place*c : (w.place+1)*c]
				first := w.top*g.In[1] + w.left
				copy(largest, x[first*c:])
				for i := range winner {
					winner[i] = T(first)
				}
				g.pixels(w, func(p int) {
					for i, v := range x[p*c : (p+1)*c] {
						if v > largest[i] {
							largest[i], winner[i] = v, T(p)
						}
					}
				})
			})
		}
	}
}

func poolPut[T Float](g Pooling) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		c := g.In[2]
		for b := from; b < to; b++ {
			winner, y, x := image(in[0], b, g.Out), image(in[1], b, g.Out), image(dst, b, g.In)
			clear(x)
			for i, p := range winner {
				x[int(p)*c+i%c] += y[i]
			}
		}
	}
}

func poolPick[T Float](g Pooling) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		c := g.In[2]
		for b := from; b < to; b++ {
			winner, x, y := image(in[0], b, g.Out), image(in[1], b, g.In), image(dst, b, g.Out)
			for i, p := range winner {
				y[i] = x[int(p)*c+i%c]
			}
		}
	}
}
