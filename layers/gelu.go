package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Gelu is the Gaussian error linear unit, y = x P(x), where P is the distribution function of N(0,1). It is exact: it does not
// use the approximation by tanh. Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
type Gelu struct{ pointwise }

func init() {
	Registry.Register("gelu", "Gaussian error linear unit, y = x P(x), P the distribution function of N(0,1)", func() Layer { return &Gelu{} })
}

func (Gelu) Activate(x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Mul(x, c.Do("cdf", func() (*gorgonia.Node, error) { return ops.NormalCDF(x) })), c.Err()
}

func (g Gelu) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return g.Activate(x) }

// lowestGelu is a lower bound of the function, whose minimum is -0.16997 at -0.7518.
const lowestGelu = -0.17

func (Gelu) OutputRange(in Interval) Interval { return selfGated(in, lowestGelu) }

// selfGated returns the range of x f(x) for a function f with 0 <= f <= 1, if lowest is a lower bound of x f(x).
func selfGated(in Interval, lowest float64) Interval {
	if in.Low >= 0 {
		lowest = 0
	}
	return Interval{lowest, max(in.High, 0)}
}
