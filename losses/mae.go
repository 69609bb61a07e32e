package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MAE is the mean over pixels and batch of |output - target|; with a mask or sample weights it is a weighted mean, see
// [MeanOf]. Its gradient is 0 where output and target are equal.
type MAE struct{ meanOnOutput }

func init() {
	Registry.Register("mae", "mean absolute error over pixels and batch", func() Loss { return &MAE{} })
}

func (MAE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	return MeanOf(&c, v, c.Abs(c.Sub(output, target))), c.Err()
}
