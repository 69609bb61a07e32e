package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// PRelu is a leaky relu with a learned slope a for every unit of a vector, or every channel of an image:
//
//	y = x for x > 0 and a x elsewhere
//
// Parameter: slope, (units) or (channels). Weight penalties and weight decay shrink the slope, too. He, Zhang, Ren and Sun,
// Delving Deep into Rectifiers, 2015; PyTorch's PReLU with num_parameters = units.
type PRelu struct {
	Slope float64 `toml:"slope" doc:"initial slope for negative values"`
}

func init() {
	Registry.Register("prelu", "y = x for x > 0, a x elsewhere, with a learned slope a per unit or channel", func() Layer { return &PRelu{Slope: 0.25} })
}

func (*PRelu) OutputShape(in []int) ([]int, error) { return in, nil }

func (p *PRelu) Parameters(in []int) []Parameter {
	return []Parameter{{Name: "slope", Shape: []int{channels(in)}, Init: &Constant{Value: p.Slope}, FanIn: 1, FanOut: 1}}
}

func (*PRelu) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sub(c.Ramp(x, 1, 0), mulChannels(&c, c.Ramp(x, 0, -1), s.Parameter("slope"))), c.Err()
}
