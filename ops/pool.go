package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	vector "tessera/kernel"
)

// Pooling is the geometry of windows that slide over images whose channels come last, every channel by itself. The window
// of place (i,j) sees the pixels (i Stride + u - Top, j Stride + v - Left), 0 <= u,v < Kernel, that lie in the image, and
// there must be at least one. Sums and their spreading are each other's derivatives; so are picking the largest values
// and putting numbers back to where they lie, which a third op finds, whose derivative is 0. They can be differentiated as
// often as wanted.
type Pooling struct {
	In     [3]int // height, width, channels of an image
	Out    [3]int // height, width, channels
	Kernel int
	Stride int
	Top    int  // rows of padding above
	Left   int  // columns of padding before
	Mean   bool // sums are divided by the number of pixels that the window sees
}

// maxPlaces is the number of pixels that float32 can count.
const maxPlaces = 1 << 24

// Check reports what no pooling can be.
func (g Pooling) Check() error {
	for _, n := range []int{g.In[0], g.In[1], g.In[2], g.Out[0], g.Out[1], g.Kernel, g.Stride} {
		if n < 1 {
			return fmt.Errorf("pooling: %+v: every size must be > 0", g)
		}
	}
	if g.Out[2] != g.In[2] {
		return fmt.Errorf("pooling: %d channels of %d", g.Out[2], g.In[2])
	}
	if g.In[0] > maxPlaces/g.In[1] {
		return fmt.Errorf("pooling: images of %dx%d, want at most %d pixels", g.In[0], g.In[1], maxPlaces)
	}
	for axis, before := range []int{g.Top, g.Left} {
		last := (g.Out[axis]-1)*g.Stride - before
		if before < 0 || before >= g.Kernel || last >= g.In[axis] {
			return fmt.Errorf("pooling: %+v: a window sees nothing of the image", g)
		}
	}
	return nil
}

// Sum returns what the windows over images x (batch, height, width, channels) see, added up, or with Mean their averages.
func (g Pooling) Sum(x *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In); err != nil {
		return nil, err
	}
	o := g.op("poolSum", x.Shape()[0], g.Out, true)
	o.f32, o.f64 = poolSum(g, vector.Float32), poolSum(g, vector.Float64)
	o.derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(g.Spread(grad)) }
	return o.apply(x)
}

// Spread is the transpose of [Pooling.Sum]: every value of y (batch, height, width, channels) is added to all pixels that
// its window sees, with Mean divided by their number.
func (g Pooling) Spread(y *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(y, g.Out); err != nil {
		return nil, err
	}
	o := g.op("poolSpread", y.Shape()[0], g.In, true)
	o.scratch = g.In[2]
	o.f32, o.f64 = poolSpread(g, vector.Float32), poolSpread(g, vector.Float64)
	o.derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(g.Sum(grad)) }
	return o.apply(y)
}

// Max returns the largest value that every window over images x (batch, height, width, channels) sees. The gradient goes
// to the first pixel, in reading order, that has it.
func (g Pooling) Max(x *gorgonia.Node) (*gorgonia.Node, error) {
	if err := g.fits(x, g.In); err != nil {
		return nil, err
	}
	o := g.op("poolMax", x.Shape()[0], g.Out, true)
	o.f32, o.f64 = poolMax(g, vector.Float32), poolMax(g, vector.Float64)
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		winner, err := g.winner(in[0])
		if err != nil {
			return nil, err
		}
		return one(g.put(winner, grad))
	}
	return o.apply(x)
}

// winner returns which pixel of the image has the largest value of every window.
func (g Pooling) winner(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op("poolWinner", x.Shape()[0], g.Out, true)
	o.fixed = []bool{true}
	o.scratch = g.In[2]
	o.f32, o.f64 = poolWinner[float32](g), poolWinner[float64](g)
	return o.apply(x)
}

// put adds the values of y to the pixels of an empty image that winner names.
func (g Pooling) put(winner, y *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op("poolPut", y.Shape()[0], g.In, true, true)
	o.fixed = []bool{true, false}
	o.f32, o.f64 = poolPut[float32](g), poolPut[float64](g)
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		n, err := g.pick(in[0], grad)
		return gorgonia.Nodes{nil, n}, err
	}
	return o.apply(winner, y)
}

// pick returns the values of the pixels of images x that winner names.
func (g Pooling) pick(winner, x *gorgonia.Node) (*gorgonia.Node, error) {
	o := g.op("poolPick", x.Shape()[0], g.Out, true, true)
	o.fixed = []bool{true, false}
	o.f32, o.f64 = poolPick[float32](g), poolPick[float64](g)
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		n, err := g.put(in[0], grad)
		return gorgonia.Nodes{nil, n}, err
	}
	return o.apply(winner, x)
}

// op is what the ops of a pooling have in common: a unit is an image.
func (g Pooling) op(name string, batch int, out [3]int, byUnit ...bool) *parallel {
	return &parallel{
		name:   fmt.Sprintf("%s%+v", name, g),
		out:    tensor.Shape{batch, out[0], out[1], out[2]},
		units:  batch,
		byUnit: byUnit,
		work:   float64(batch*g.Out[0]*g.Out[1]*g.Out[2]) * float64(min(g.Kernel, g.In[0])*min(g.Kernel, g.In[1])),
	}
}

// fits reports images of another shape than the geometry's.
func (g Pooling) fits(x *gorgonia.Node, image [3]int) error {
	if err := g.Check(); err != nil {
		return err
	}
	if s := x.Shape(); len(s) != 4 || !s[1:].Eq(tensor.Shape(image[:])) {
		return fmt.Errorf("pooling: got images of shape %v, want (batch) and %v", s, image)
	}
	return nil
}

// one is the result of a derivative with respect to the only input.
func one(n *gorgonia.Node, err error) (gorgonia.Nodes, error) { return gorgonia.Nodes{n}, err }
