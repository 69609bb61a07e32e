package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Silu is the sigmoid linear unit, y = x / (1 + exp(-x)), also called swish. Elfwing, Uchibe and Doya, Sigmoid-weighted linear
// units for neural network function approximation in reinforcement learning, 2017; Ramachandran, Zoph and Le, Searching for
// activation functions, 2017.
type Silu struct{ pointwise }

func init() {
	Registry.Register("silu", "sigmoid linear unit (swish), y = x/(1+exp(-x))", func() Layer { return &Silu{} })
}

func (Silu) Activate(x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Mul(x, c.Do("sigmoid", func() (*gorgonia.Node, error) { return gorgonia.Sigmoid(x) })), c.Err()
}

func (s Silu) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return s.Activate(x) }

// lowestSilu is a lower bound of the function, whose minimum is -0.27846 at -1.2785.
const lowestSilu = -0.2785

func (Silu) OutputRange(in Interval) Interval { return selfGated(in, lowestSilu) }
