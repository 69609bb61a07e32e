package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Relevance switches surplus units off. With the relevance r_j = t_j / mean(t), where t_j is the mean activation of unit j over the
// batch and mean(t) the mean of all units, it is the mean over the k units of
//
//	log(1 + r_j / b) / log(1 + 1 / b)
//
// which is 1 if all units are equally active and about 1/k if only one is. The logarithm is steep at 0: a redundant unit
// loses its activation to another unit and then costs nothing, while the cost of a unit in use hardly depends on its
// activation. The scale of the codes has no effect. With atoms of length 1, the code of a unit equals the size of its
// contribution. All activations must be non-negative, as after a relu.
//
// Source: Tan and Févotte, Automatic Relevance Determination in Nonnegative Matrix Factorization with the β-Divergence, 2013, whose
// l1 prior has the cost log(relevance + b) for each unit.
type Relevance struct {
	meanActivation
	Bend float64 `toml:"bend" want:"in (0,1]" doc:"b, the relevance, in units of the mean, below which a unit is being switched off"`
}

func init() {
	Registry.Register("relevance", "mean over units of log(1 + r/b) / log(1 + 1/b), r the mean activation over that of all units", func() Loss {
		return &Relevance{Bend: 0.1}
	})
}

func (l *Relevance) Build(v Values) (*gorgonia.Node, error) {
	if !(l.Bend > 0) {
		return nil, fmt.Errorf("bend: got %v, want > 0", l.Bend)
	}
	var c ops.Chain
	r := ofMean(&c, c.Mean(c.Abs(c.Do("on", v.On)), 0))
	return c.Scale(c.Mean(c.Log1p(c.Scale(r, 1/l.Bend))), 1/math.Log1p(1/l.Bend)), c.Err()
}

// ofMean divides the values of a vector by their mean. For an all-zero vector the result is 0.
func ofMean(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	if c.Err() != nil {
		return nil
	}
	mean := c.Shift(c.Abs(c.Mean(x)), ofMeanTiny)
	return c.Mul(x, c.Do("1/mean", func() (*gorgonia.Node, error) { return gorgonia.HadamardDiv(ops.Scalar(mean, 1), mean) }))
}

// ofMeanTiny keeps the quotient finite in float32.
const ofMeanTiny = 1e-15
