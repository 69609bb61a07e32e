package losses

import (
	"gorgonia.org/gorgonia"

	"tessera/graph/ops"
)

// AuxK makes dead units reconstruct what the others leave over, so that they come back to life:
//
//	mean over pixels and batch of (e - z A)²    e = target - output, without a gradient
//
// z are the values of dead units that the encoder's last layer aux_k publishes as spare, A the atoms, and the target is what the output is
// compared with, by default the images. Without dead units there is no gradient, and the value is the squared error. The weight in the source is 1/32 beside mse. Source: Gao et al., Scaling and
// evaluating sparse autoencoders, 2024.
type AuxK struct{}

func init() {
	Registry.Register("aux_k", "squared error of what dead units make of the residual", func() Loss { return &AuxK{} })
}

func (*AuxK) On() string { return Code }

func (*AuxK) Reads() Reads {
	return Reads{Atoms: true, Published: []string{"spare"}, PublishedBy: "aux_k", Values: []string{Output}, Held: []string{Output}}
}

func (*AuxK) Build(v Values) (*gorgonia.Node, error) {
	spare, err := v.Published("spare")
	if err != nil {
		return nil, err
	}
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	residual := c.Sub(d.Images, c.Do("output", func() (*gorgonia.Node, error) { return v.Value(Output) }))
	return c.Mean(c.Square(c.Sub(residual, c.MatMul(spare, d.Atoms)))), c.Err()
}
