package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Invariance is the mean squared difference of the values of the two views of an image. For n images with the values z_i and
// z'_i of d units, the term is
//
//	1/nd sum over i of |z_i - z'_i|^2
//
// The term is 0 if all images have the same value. The terms [Variance] and [Covariance] prevent this collapse. VICReg is the
// sum of invariance (weight 25), variance (25) and covariance (2), the last two with views = true. The paper's weight of the
// covariance is 1, but it adds the two views, whereas covariance averages them.
//
// Source: Bardes, Ponce and LeCun, VICReg: variance-invariance-covariance regularization, 2022.
type Invariance struct{}

func init() {
	Registry.Register("invariance", "mean squared difference of the values of the two views (VICReg)", func() Loss { return &Invariance{} })
}

// On implements [Loss]. The default is a head named projection.
func (Invariance) On() string { return "projection" }

func (Invariance) Reads() Reads { return Reads{On: true, Views: true} }

func (Invariance) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	first, second := views(&c, z)
	return c.Mean(c.Square(c.Sub(first, second))), c.Err()
}

// views splits z, (2n, d), into the values of the first and of the second view of every image, each (n, d). The two values of
// an image are first put into one row, so that a process that holds a part of the images needs no values of other processes.
func views(c *ops.Chain, z *gorgonia.Node) (first, second *gorgonia.Node) {
	n, d := z.Shape()[0]/2, z.Shape()[1]
	halves := c.Reshape(z, 2, n, d)
	pairs := c.Do("views", func() (*gorgonia.Node, error) { return gorgonia.Transpose(halves, 1, 0, 2) })
	pairs = c.Reshape(pairs, n, 2*d)
	return c.Columns(pairs, 0, d), c.Columns(pairs, d, d)
}

// eachView returns the mean of f over the two views. If ofViews is false, it returns f(z).
func eachView(c *ops.Chain, z *gorgonia.Node, ofViews bool, f func(*gorgonia.Node) *gorgonia.Node) *gorgonia.Node {
	if !ofViews {
		return f(z)
	}
	first, second := views(c, z)
	return c.Scale(c.Add(f(first), f(second)), 0.5)
}

// centred subtracts the mean over the images from every unit.
func centred(c *ops.Chain, z *gorgonia.Node) *gorgonia.Node { return c.SubRow(z, c.Mean(z, 0)) }

// degrees returns the degrees of freedom of the variance over n images, n-1. For one image it returns 1, because the sum of
// squares is 0.
func degrees(z *gorgonia.Node) float64 { return float64(max(1, z.Shape()[0]-1)) }
