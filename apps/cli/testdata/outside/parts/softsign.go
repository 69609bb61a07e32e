package parts

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/layers"
)

// Softsign is the activation y = x / (scale + |x|), with a learned scale for every unit of the last axis.
type Softsign struct {
	Scale float64 `toml:"scale" want:"> 0" doc:"scale at the beginning"`
}

func init() {
	layers.Registry.Register("softsign", "y = x / (scale + |x|), scale learned", func() layers.Layer { return &Softsign{Scale: 1} })
}

// OutputShape implements [layers.Layer].
func (*Softsign) OutputShape(in []int) ([]int, error) { return slices.Clone(in), nil }

// Parameters implements [layers.Layer].
func (s *Softsign) Parameters(in []int) []layers.Parameter {
	n := in[len(in)-1]
	return []layers.Parameter{{Name: "scale", Shape: []int{n}, Init: &layers.Constant{Value: s.Scale}, FanIn: n, FanOut: n}}
}

// Apply implements [layers.Layer]. It reshapes x to rows of the last axis. The scale is the square of the parameter plus a
// small constant, and therefore positive.
func (*Softsign) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	n := x.Shape()[x.Dims()-1]
	rows := c.Reshape(x, x.Shape().TotalSize()/n, n)
	scale := c.Shift(c.Square(s.Parameter("scale")), 1e-3)
	y := c.Div(rows, c.AddRow(c.Abs(rows), scale))
	return c.Reshape(y, x.Shape()...), c.Err()
}
