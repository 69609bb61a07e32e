package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Spread is the mean over images of |h|_1 / |h|_2: 1 if one unit is active, √m if m units are equally active. Its square is an
// effective number of active units. It equals √k - (√k - 1) sigma, where sigma is the sparseness of [Hoyer] for k units.
// Unlike sigma, it does not change when units that are never active are added: a limit means the same for any number of units.
// An all-zero code counts as 0. The scale of a code has no effect.
//
// Sources: Hoyer, Non-negative Matrix Factorization with Sparseness Constraints, JMLR 5 (2004) (the ratio of the norms);
// Hurley and Rickard, Comparing Measures of Sparsity, 2009 (the effect of added zeros).
type Spread struct{ onCode }

func init() {
	Registry.Register("spread", "mean over samples of |h|_1 / |h|_2: the square root of the effective number of active units", func() Loss { return &Spread{} })
}

func (*Spread) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Mean(normRatio(&c, c.Do("on", v.On))), c.Err()
}

// normRatio returns |h|_1 / (|h|_2 + 1e-7) for every row.
func normRatio(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	norm1 := c.Sum(c.Abs(x), 1)
	norm2 := c.Sqrt(c.Shift(c.Sum(c.Square(x), 1), tiny))
	return c.Div(norm1, c.Shift(norm2, epsilon))
}
