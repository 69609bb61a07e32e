package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// onOutput is embedded by the reconstruction terms.
type onOutput struct{}

// On implements [Loss].
func (onOutput) On() string { return "output" }

// MSE is the mean over pixels and batch of (output - target)².
type MSE struct{ onOutput }

func init() {
	Registry.Register("mse", "mean squared error over pixels and batch", func() Loss { return &MSE{} })
}

// Compare implements [Reconstruction].
func (MSE) Compare(output, target *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Mean(c.Square(c.Sub(output, target))), c.Err()
}
