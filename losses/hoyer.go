package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Hoyer is the mean over images of |s - sigma(h)|, where s is the target and
//
//	sigma(h) = (sqrt(k) - |h|_1 / (|h|_2 + 1e-7)) / (sqrt(k) - 1 + 1e-7)
//
// is the sparseness of a code of k units: 0 when all are equal, 1 when one alone is not 0. Hoyer, Non-negative Matrix
// Factorization with Sparseness Constraints, JMLR 5 (2004). The measure has no derivative at an all-zero code, where
// the formula gives a little more than 1; the derivative is taken to be 0 there.
type Hoyer struct {
	onCode
	Target float64 `toml:"target" want:"in [0,1]" doc:"s, the target sparsity of every code"`
}

func init() {
	Registry.Register("hoyer", "mean over images of |s - sigma(h)|, sigma the Hoyer sparsity of the code", func() Loss {
		return &Hoyer{Target: 0.6}
	})
}

// tiny keeps the derivative of the square root finite at 0 and changes no value: any square that counts is larger.
const tiny = 1e-30

// CheckUnits implements [UnitsChecker].
func (*Hoyer) CheckUnits(units int) error {
	if units < 2 {
		return fmt.Errorf("the sparseness of a code of %d unit is not defined: want at least 2 units", units)
	}
	return nil
}

// Build implements [Loss].
func (l *Hoyer) Build(v Values) (*gorgonia.Node, error) {
	code, err := v.On()
	if err != nil {
		return nil, err
	}
	units := code.Shape()[1]
	if err := l.CheckUnits(units); err != nil {
		return nil, err
	}
	root := math.Sqrt(float64(units))
	var c ops.Chain
	norm1 := c.Sum(c.Abs(code), 1)
	norm2 := c.Sqrt(c.Shift(c.Sum(c.Square(code), 1), tiny))
	ratio := c.Div(norm1, c.Shift(norm2, epsilon))
	sigma := c.Scale(c.From(root, ratio), 1/(root-1+epsilon))
	return c.Mean(c.Abs(c.From(l.Target, sigma))), c.Err()
}
