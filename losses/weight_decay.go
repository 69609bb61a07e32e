package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// onWeights is embedded by the penalties of parameters.
type onWeights struct{}

// On implements [Loss].
func (onWeights) On() string { return "decoder.*.weight" }

// WeightDecay is half the squared norm, sum w² / 2, so that its gradient is the weights themselves.
type WeightDecay struct{ onWeights }

func init() {
	Registry.Register("weight_decay", "half the squared norm of the weights", func() Loss { return &WeightDecay{} })
}

// Decay implements [WeightPenalty].
func (*WeightDecay) Decay(weight *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Scale(c.Sum(c.Square(weight)), 0.5), c.Err()
}
