package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Invariance is the mean squared difference of the values of the two views of an image. With z_i and z'_i, of d units each, and n
// images it is
//
//	1/nd sum over i of |z_i - z'_i|^2
//
// It is 0 if all values are equal, and therefore needs terms that prevent this: [Variance] and [Covariance]. VICReg is the sum of the
// three with the weights 25, 25 and 2 and views = true; the weight 2 is the paper's 1 for each of the views.
//
// Source: Bardes, Ponce and LeCun, VICReg: variance-invariance-covariance regularization, 2022.
type Invariance struct{}

func init() {
	Registry.Register("invariance", "mean squared difference of the values of the two views (VICReg)", func() Loss { return &Invariance{} })
}

// On implements [Loss]: a head of that name.
func (Invariance) On() string { return "projection" }

// Reads implements [Loss].
func (Invariance) Reads() Reads { return Reads{On: true, Views: true} }

// Build implements [Loss].
func (Invariance) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	first, second := views(&c, z)
	return c.Mean(c.Square(c.Sub(first, second))), c.Err()
}

// views are the values (n, d) of the first and of the second view of every image, from z (2n, d). Both values of an image are first put
// into one row: then processes that divide the images need no others than their own.
func views(c *ops.Chain, z *gorgonia.Node) (first, second *gorgonia.Node) {
	n, d := z.Shape()[0]/2, z.Shape()[1]
	halves := c.Reshape(z, 2, n, d)
	pairs := c.Do("views", func() (*gorgonia.Node, error) { return gorgonia.Transpose(halves, 1, 0, 2) })
	pairs = c.Reshape(pairs, n, 2*d)
	return c.Columns(pairs, 0, d), c.Columns(pairs, d, d)
}

// eachView is the mean of f over the two views, or f of all images if z is not computed from views.
func eachView(c *ops.Chain, z *gorgonia.Node, ofViews bool, f func(*gorgonia.Node) *gorgonia.Node) *gorgonia.Node {
	if !ofViews {
		return f(z)
	}
	first, second := views(c, z)
	return c.Scale(c.Add(f(first), f(second)), 0.5)
}

// centred subtracts the mean over the images from every unit.
func centred(c *ops.Chain, z *gorgonia.Node) *gorgonia.Node { return c.SubRow(z, c.Mean(z, 0)) }

// degrees are those of freedom of a variance of n images: n-1, which is 0 for one image, whose variance is 0.
func degrees(z *gorgonia.Node) float64 { return float64(max(1, z.Shape()[0]-1)) }
