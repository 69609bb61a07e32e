package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Hoyer is the mean over images of |s - sigma(h)|, where s is the target and
//
//	sigma(h) = (sqrt(k) - |h|_1 / (|h|_2 + 1e-7)) / (sqrt(k) - 1 + 1e-7)
//
// is the sparseness of a code of k units: 0 if all units are equal, 1 if only one unit is non-zero. Hoyer, Non-negative
// Matrix Factorization with Sparseness Constraints, JMLR 5 (2004). For an all-zero code the formula yields slightly more than
// 1 and has no derivative; the gradient is defined as 0 there.
type Hoyer struct {
	onCode
	Target float64 `toml:"target" want:"in [0,1]" doc:"s, the target sparsity of every code"`
}

func init() {
	Registry.Register("hoyer", "mean over samples of |s - sigma(h)|, sigma the Hoyer sparsity of the code", func() Loss {
		return &Hoyer{Target: 0.6}
	})
}

// tiny keeps the derivative of the square root finite at 0. It is far below any relevant square and changes no value.
const tiny = 1e-30

func (*Hoyer) CheckUnits(units int) error { return checkUnits(units) }

func checkUnits(units int) error {
	if units < 2 {
		return fmt.Errorf("the sparseness of a code of %d unit is not defined: want at least 2 units", units)
	}
	return nil
}

func (l *Hoyer) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	sigma := sparseness(&c, v)
	return c.Mean(c.Abs(c.From(l.Target, sigma))), c.Err()
}

// sparseness returns sigma(h) for every image.
func sparseness(c *ops.Chain, v Values) *gorgonia.Node {
	code := c.Do("on", v.On)
	if c.Err() != nil {
		return nil
	}
	units := code.Shape()[1]
	if err := checkUnits(units); err != nil {
		return c.Do("units", func() (*gorgonia.Node, error) { return nil, err })
	}
	root := math.Sqrt(float64(units))
	return c.Scale(c.From(root, normRatio(c, code)), 1/(root-1+epsilon))
}
