package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	vector "tessera/kernel"
)

// Pooling is the geometry of windows over images with channels last; every channel is pooled separately. The window of
// place (i,j) covers the pixels (i Stride + u - Top, j Stride + v - Left), 0 <= u,v < Kernel, that lie in the image; there
// must be at least one. [Pooling.Sum] and [Pooling.Spread] are each other's derivatives. The same holds for picking the
// winners (the pixels with the largest values) and putting values at the winners; the op that finds the winners has
// derivative 0. All ops can be differentiated any number of times.
type Pooling struct {
	In     [3]int // height, width, channels of an image
	Out    [3]int // height, width, channels
	Kernel int
	Stride int
	Top    int  // rows of padding above
	Left   int  // columns of padding before
	Mean   bool // sums are divided by the number of pixels in the window
}

// The specs of the ops of a pooling. PoolSumOp, PoolSpreadOp and PoolMaxOp are the specs of [Pooling.Sum], [Pooling.Spread]
// and [Pooling.Max]. PoolWinnerOp maps images to the index of each window's largest value. PoolPutOp maps winners and y to
// images that are 0 except for the values of y, added at the winners. PoolPickOp maps winners and images to the pixels at
// the winners.
type (
	PoolSumOp    Pooling
	PoolSpreadOp Pooling
	PoolMaxOp    Pooling
	PoolWinnerOp Pooling
	PoolPutOp    Pooling
	PoolPickOp   Pooling
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
	o.Derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(g.Spread(grad)) }
	return o.Apply(x)
}

// Spread is the transpose of [Pooling.Sum]: every value of y (batch, height, width, channels), with Mean divided by the
// number of pixels in its window, is added to all these pixels.
func (g Pooling) Spread(y *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(y, g.Out); err != nil {
		return nil, err
	}
	o := g.op(PoolSpreadOp(g), y.Shape()[0], g.In, true)
	o.Scratch = g.In[2]
	o.Float32, o.Float64 = poolSpread(g, vector.Float32), poolSpread(g, vector.Float64)
	o.Derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(g.Sum(grad)) }
	return o.Apply(y)
}

// Max returns the largest value in every window over images x (batch, height, width, channels). The gradient goes to the
// first pixel, in reading order, with this value.
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
		return one(g.put(winner, grad))
	}
	return o.Apply(x)
}

// winner returns the index in the image of the largest value of every window.
func (g Pooling) winner(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(PoolWinnerOp(g), x.Shape()[0], g.Out, true)
	o.Fixed = []bool{true}
	o.Scratch = g.In[2]
	o.Float32, o.Float64 = poolWinner[float32](g), poolWinner[float64](g)
	return o.Apply(x)
}

// put adds the values of y to an empty image at the indices winner.
func (g Pooling) put(winner, y *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(PoolPutOp(g), y.Shape()[0], g.In, true, true)
	o.Fixed = []bool{true, false}
	o.Float32, o.Float64 = poolPut[float32](g), poolPut[float64](g)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return second(g.pick(in[0], grad))
	}
	return o.Apply(winner, y)
}

// pick returns the pixels of images x at the indices winner.
func (g Pooling) pick(winner, x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op(PoolPickOp(g), x.Shape()[0], g.Out, true, true)
	o.Fixed = []bool{true, false}
	o.Float32, o.Float64 = poolPick[float32](g), poolPick[float64](g)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return second(g.put(in[0], grad))
	}
	return o.Apply(winner, x)
}

// op contains the common fields of the ops of a pooling: a unit is an image.
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

// fits returns an error for images of another shape than the geometry's.
func (g Pooling) fits(x *gorgonia.Node, image [3]int) error {
	if err := g.Check(); err != nil {
		return err
	}
	if s := x.Shape(); len(s) != 4 || !s[1:].Eq(tensor.Shape(image[:])) {
		return fmt.Errorf("pooling: got images of shape %v, want (batch) and %v", s, image)
	}
	return nil
}

// one is the result of the derivative of an op with one input.
func one(n *gorgonia.Node, err error) (gorgonia.Nodes, error) { return gorgonia.Nodes{n}, err }

// second is the result of the derivative of an op with a fixed first input.
func second(n *gorgonia.Node, err error) (gorgonia.Nodes, error) { return gorgonia.Nodes{nil, n}, err }
