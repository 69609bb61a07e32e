package losses

import (
	"errors"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// onWeights is embedded by the penalties of parameters.
type onWeights struct{}

// On implements [Loss].
func (onWeights) On() string { return "decoder.*.weight" }

// Reads implements [Loss].
func (onWeights) Reads() Reads { return Reads{Per: Parameter} }

// overWeights sums a scalar over the parameters that match `on`.
func overWeights(v Values, one func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node) (sum *gorgonia.Node, err error) {
	weights, err := v.Weights()
	var c ops.Chain
	for _, w := range weights {
		if term := one(&c, w); sum == nil {
			sum = term
		} else {
			sum = c.Add(sum, term)
		}
	}
	return sum, errors.Join(err, c.Err())
}

// WeightDecay is half the squared norm, sum w² / 2. Its gradient is w.
type WeightDecay struct{ onWeights }

func init() {
	Registry.Register("weight_decay", "half the squared norm of the weights", func() Loss { return &WeightDecay{} })
}

// Build implements [Loss].
func (*WeightDecay) Build(v Values) (*gorgonia.Node, error) {
	return overWeights(v, func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node { return c.Scale(c.Sum(c.Square(w)), 0.5) })
}
