package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// Pooling is the geometry of windows over images whose channels come last. Every channel is pooled separately. The
// window of output (i,j) consists of the pixels (i Stride + u - Top, j Stride + v - Left), 0 <= u,v < Kernel, that lie
// in the image; there must be at least one such pixel. [Pooling.Sum] and [Pooling.Spread] are each other's derivatives.
// The derivative of [Pooling.Max] adds the gradient of each output to the winner, the pixel with the largest value of
// the window. All ops can be differentiated any number of times.
type Pooling struct {
	In     [3]int // height, width, channels of an image
	Out    [3]int // height, width, channels
	Kernel int
	Stride int
	Top    int  // rows of padding above
	Left   int  // columns of padding to the left
	Mean   bool // sums are divided by the number of pixels in the window
}

// Specs of the ops of a pooling. PoolSumOp, PoolSpreadOp and PoolMaxOp are the specs of [Pooling.Sum], [Pooling.Spread] and
// [Pooling.Max]. poolWinnerOp maps images to the index of each window's largest value. poolPutOp maps winners and y to images
// that are 0 except for the values of y, added at the winners. poolPickOp maps winners and images to the pixels at the
// winners.
type (
	PoolSumOp    Pooling
	PoolSpreadOp Pooling
	PoolMaxOp    Pooling
	poolWinnerOp Pooling
	poolPutOp    Pooling
	poolPickOp   Pooling
)

// maxPlaces is the number of indices that float32 represents exactly.
const maxPlaces = 1 << 24

// Check returns an error for an invalid geometry.
func (g Pooling) Check() error {
	for _, n := range []int{g.In[0], g.In[1], g.In[2], g.Out[0], g.Out[1], g.Kernel, g.Stride} {
		if n < 1 {
			return fmt.Errorf("pooling: %+v: every size must be > 0", g)
		}
	}
	if g.Out[2] != g.In[2] {
		return fmt.Errorf("pooling: got %d output channels, want %d, the input channels", g.Out[2], g.In[2])
	}
	if g.In[0] > maxPlaces/g.In[1] {
		return fmt.Errorf("pooling: images of %dx%d, want at most %d pixels", g.In[0], g.In[1], maxPlaces)
	}
	for axis, before := range []int{g.Top, g.Left} {
		last := (g.Out[axis]-1)*g.Stride - before
		if before < 0 || before >= g.Kernel || last >= g.In[axis] {
			return fmt.Errorf("pooling: %+v: a window lies outside the image", g)
		}
	}
	return nil
}

// Sum returns the sums, or with Mean the averages, of the windows over images x (batch, height, width, channels).
func (g Pooling) Sum(x *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In); err != nil {
		return nil, err
	}
	o := g.op(PoolSumOp(g), x.Shape()[0], g.Out, true)
	o.Float32, o.Float64 = poolSum(g, vector.Float32), poolSum(g, vector.Float64)
	o.Derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return gradientOf(g.Spread(grad))
	}
	return o.Apply(x)
}

// Spread returns the transpose of [Pooling.Sum]: it adds every value of y (batch, height, width, channels) to all
// pixels of its window. With Mean, the value is divided by the number of these pixels.
func (g Pooling) Spread(y *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(y, g.Out); err != nil {
		return nil, err
	}
	o := g.op(PoolSpreadOp(g), y.Shape()[0], g.In, true)
	o.Scratch = g.In[2]
	o.Float32, o.Float64 = poolSpread(g, vector.Float32), poolSpread(g, vector.Float64)
	o.Derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return gradientOf(g.Sum(grad)) }
	return o.Apply(y)
}

// Max returns the largest value of every window over images x (batch, height, width, channels). The gradient goes to
// the first pixel with this value in reading order.
func (g Pooling) Max(x *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In); err != nil {
		return nil, err
	}
	o := g.op(PoolMaxOp(g), x.Shape()[0], g.Out, true)
	o.Float32, o.Float64 = poolMax(g, vector.Float32), poolMax(g, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		winner, err := g.winner(in[0])
		if err != nil {
			return nil, err
		}
		return gradientOf(g.put(winner, grad))
	}
	return o.Apply(x)
}

// winner returns, for every window, the index in the image of its largest value.
func (g Pooling) winner(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(poolWinnerOp(g), x.Shape()[0], g.Out, true)
	o.Fixed = []bool{true}
	o.Scratch = g.In[2]
	o.Float32, o.Float64 = poolWinner[float32](g), poolWinner[float64](g)
	return o.Apply(x)
}

// put adds the values of y to an all-zero image at the indices in winner.
func (g Pooling) put(winner, y *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(poolPutOp(g), y.Shape()[0], g.In, true, true)
	o.Fixed = []bool{true, false}
	o.Float32, o.Float64 = poolPut[float32](g), poolPut[float64](g)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return second(g.pick(in[0], grad))
	}
	return o.Apply(winner, y)
}

// pick returns the pixels of images x at the indices in winner.
func (g Pooling) pick(winner, x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(poolPickOp(g), x.Shape()[0], g.Out, true, true)
	o.Fixed = []bool{true, false}
	o.Float32, o.Float64 = poolPick[float32](g), poolPick[float64](g)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return second(g.put(in[0], grad))
	}
	return o.Apply(winner, x)
}

// op returns the common fields of the ops of a pooling. A unit is an image.
func (g Pooling) op(spec any, batch int, out [3]int, byUnit ...bool) *Unitwise {
	return &Unitwise{
		Spec:     spec,
		Out:      tensor.Shape{batch, out[0], out[1], out[2]},
		Units:    batch,
		ByUnit:   byUnit,
		Division: ir.ByUnits,
		Work:     float64(batch*g.Out[0]*g.Out[1]*g.Out[2]) * float64(min(g.Kernel, g.In[0])*min(g.Kernel, g.In[1])),
	}
}

// fits returns an error if the shape of the images does not match the geometry.
func (g Pooling) fits(x *gorgonia.Node, image [3]int) error {
	if err := g.Check(); err != nil {
		return err
	}
	if s := x.Shape(); len(s) != 4 || !s[1:].Eq(tensor.Shape(image[:])) {
		return fmt.Errorf("pooling: got images of shape %v, want (batch) and %v", s, image)
	}
	return nil
}

// gradientOf returns n as the only gradient of an op with one input.
func gradientOf(n *gorgonia.Node, err error) (gorgonia.Nodes, error) { return gorgonia.Nodes{n}, err }

// second returns n as the gradient of the second input of an op whose first input is fixed.
func second(n *gorgonia.Node, err error) (gorgonia.Nodes, error) { return gorgonia.Nodes{nil, n}, err }

// view is the part of a window inside the image: rows [top, bottom) and columns [left, right). place is the index of
// its output.
type view struct{ place, top, bottom, left, right int }

// windows calls f for every output of an image, in reading order.
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

// seen returns the number of pixels in a view.
func (v view) seen() int { return (v.bottom - v.top) * (v.right - v.left) }

// image returns the i-th image of the given shape in images.
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
