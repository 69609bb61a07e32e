package layers

import "gorgonia.org/gorgonia"

// Tanh maps every value into (-1,1): y = tanh(x).
type Tanh struct{ pointwise }

func init() {
	Registry.Register("tanh", "hyperbolic tangent, y = tanh(x)", func() Layer { return &Tanh{} })
}

func (Tanh) Activate(x *gorgonia.Node) (*gorgonia.Node, error)         { return gorgonia.Tanh(x) }
func (t Tanh) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return t.Activate(x) }

func (Tanh) OutputRange(in Interval) Interval {
	if in.Low >= 0 {
		return Interval{0, 1}
	}
	return Interval{-1, 1}
}
