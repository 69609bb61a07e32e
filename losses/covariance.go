package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Covariance decorrelates the units of a value over the images of a batch. Let C be the covariance matrix of the d units over
// n images, with n-1 degrees of freedom. The term is
//
//	1/d sum over j != k of C_jk²
//
// With views it is the mean of the term over the two views. It can be applied to any value, such as the code of an
// auto-encoder.
//
// Source: Bardes, Ponce and LeCun, VICReg, 2022.
type Covariance struct {
	Views bool `toml:"views" doc:"read the two views, each by itself, in place of the samples"`
}

func init() {
	Registry.Register("covariance", "squared covariances of different units over the batch (VICReg)", func() Loss { return &Covariance{} })
}

func (*Covariance) On() string     { return Code }
func (l *Covariance) Reads() Reads { return Reads{Per: Batch, On: true, Views: l.Views} }

func (l *Covariance) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	off := func(z *gorgonia.Node) *gorgonia.Node {
		x := centred(&c, z)
		covariance := c.Scale(c.MatMul(c.Transpose(x), x), 1/degrees(z))
		return c.Scale(c.Sum(c.Square(offDiagonal(&c, covariance))), 1/float64(z.Shape()[1]))
	}
	return eachView(&c, z, l.Views, off), c.Err()
}

// offDiagonal returns a copy of a square matrix with 0 on its diagonal.
func offDiagonal(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	return c.Do("off-diagonal", func() (*gorgonia.Node, error) { return ops.WithDiagonal(x, 0) })
}
