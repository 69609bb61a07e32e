package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// epsilon keeps logarithms of probabilities finite: probabilities are clipped to [epsilon, 1-epsilon]. In float32 the upper
// end is rounded to 1 - 2^-23. The gradient of a clipped value is 0.
const epsilon = 1e-7

// BCE is the binary cross entropy, the mean over pixels and batch of -(x log y + (1-x) log(1-y)), for outputs y and
// targets x in [0,1]. y is clipped to [1e-7, 1-1e-7]; the gradient of a clipped value is 0.
type BCE struct{ meanOnOutput }

func init() {
	Registry.Register("bce", "binary cross entropy, mean over pixels and batch of -(x log y + (1-x) log(1-y))", func() Loss { return &BCE{} })
}

func (BCE) Reads() Reads { return Reads{On: true, Against: Images, Counts: true, Unit: true} }

func (BCE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	y := c.Clip(output, epsilon, 1-epsilon)
	present := c.Mul(target, c.Log(y))
	absent := c.Mul(c.From(1, target), c.Log1p(c.Neg(y)))
	return c.Neg(MeanOf(&c, v, c.Add(present, absent))), c.Err()
}
