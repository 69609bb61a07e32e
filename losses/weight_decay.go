package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// WeightDecay is half the squared norm of the parameters, sum w² / 2. The gradient is w.
type WeightDecay struct{ onWeights }

func init() {
	Registry.Register("weight_decay", "half the squared norm of the weights", func() Loss { return &WeightDecay{} })
}

func (*WeightDecay) Build(v Values) (*gorgonia.Node, error) {
	return overWeights(v, func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node { return c.Scale(c.Sum(c.Square(w)), 0.5) })
}
