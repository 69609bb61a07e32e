package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Affine is y = factor x + offset with constants that are not learned. As the last layer of a head that predicts numbers it gives them their
// unit: with a factor near the standard deviation of the numbers and an offset near their mean, the layer before it learns numbers about 1.
type Affine struct {
	pointwise
	Factor float64 `toml:"factor" doc:"factor of every value"`
	Offset float64 `toml:"offset" doc:"what is added"`
}

func init() {
	Registry.Register("affine", "a constant factor and offset, y = factor x + offset: the unit of numbers", func() Layer { return &Affine{Factor: 1} })
}

func (l *Affine) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Shift(c.Scale(x, l.Factor), l.Offset), c.Err()
}

func (l *Affine) OutputRange(in Interval) Interval {
	if l.Factor == 0 {
		return Interval{l.Offset, l.Offset}
	}
	a, b := l.Factor*in.Low+l.Offset, l.Factor*in.High+l.Offset
	return Interval{min(a, b), max(a, b)}
}
