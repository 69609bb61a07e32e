package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// HardSigmoid is a piecewise linear sigmoid, y = min(max(x/6 + 1/2, 0), 1), as in PyTorch. Courbariaux, Bengio and David,
// BinaryConnect, 2015, use another slope.
type HardSigmoid struct{ pointwise }

func init() {
	Registry.Register("hard_sigmoid", "piecewise linear sigmoid, y = min(max(x/6 + 1/2, 0), 1)", func() Layer { return &HardSigmoid{} })
}

func (HardSigmoid) Activate(x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Clip(c.Shift(c.Scale(x, 1.0/6), 0.5), 0, 1), c.Err()
}

func (h HardSigmoid) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return h.Activate(x) }
func (HardSigmoid) OutputRange(Interval) Interval                             { return Interval{0, 1} }
