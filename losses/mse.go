package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// MSE is the mean over pixels and batch of (output - target)²; with `mask` and `sample_weight` over what counts, see [MeanOf].
type MSE struct{ meanOnOutput }

func init() {
	Registry.Register("mse", "mean squared error over pixels and batch", func() Loss { return &MSE{} })
}

// Build implements [Loss].
func (MSE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	return MeanOf(&c, v, c.Square(c.Sub(output, target))), c.Err()
}
