package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Huber is the mean over pixels and batch of the Huber function of the error d = output - target:
//
//	d²/2 for |d| <= delta, and delta (|d| - delta/2) otherwise
//
// The formula is PyTorch's HuberLoss with a smaller default delta: with PyTorch's delta = 1 all errors of images in [0,1]
// would be squared. Source: Huber, Robust estimation of a location parameter, 1964.
type Huber struct {
	meanOnOutput
	Delta float64 `toml:"delta" want:"> 0" doc:"error from which the loss grows linearly"`
}

func init() {
	Registry.Register("huber", "squared for small errors, absolute for large ones, mean over pixels and batch", func() Loss {
		return &Huber{Delta: 0.1}
	})
}

// Build implements [Loss]. With the error d clipped to c the function is c (d - c/2).
func (l *Huber) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	d := c.Sub(c.Do("on", v.On), c.Do("against", v.Against))
	clipped := c.Clip(d, -l.Delta, l.Delta)
	return MeanOf(&c, v, c.Mul(clipped, c.Sub(d, c.Scale(clipped, 0.5)))), c.Err()
}
