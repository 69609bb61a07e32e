package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Variance keeps the standard deviation of every unit over the images of a batch above a target T, so that a value does not
// collapse to a constant. Let s_j² be the variance of unit j over n images, with n-1 degrees of freedom. For d units the term
// is
//
//	1/d sum over j of max(0, T - sqrt(s_j² + 0.0001))
//
// With views it is the mean of the term over the two views. Source: Bardes, Ponce and LeCun, VICReg, 2022.
type Variance struct {
	Target float64 `toml:"target" want:"> 0" doc:"T, the standard deviation from which there is no penalty"`
	Views  bool    `toml:"views" doc:"read the two views, each by itself, in place of the samples"`
}

func init() {
	Registry.Register("variance", "units whose standard deviation over the batch is below a target (VICReg)", func() Loss { return &Variance{Target: 1} })
}

// varianceFloor keeps the derivative of a standard deviation finite.
const varianceFloor = 1e-4

func (*Variance) On() string     { return Code }
func (l *Variance) Reads() Reads { return Reads{Per: Batch, On: true, Views: l.Views} }

func (l *Variance) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	hinge := func(z *gorgonia.Node) *gorgonia.Node {
		variance := c.Scale(c.Sum(c.Square(centred(&c, z)), 0), 1/degrees(z))
		return c.Mean(c.Ramp(c.From(l.Target, c.Sqrt(c.Shift(variance, varianceFloor))), 1, 0))
	}
	return eachView(&c, z, l.Views, hinge), c.Err()
}
