package losses

import (
	"gorgonia.org/gorgonia"

	"tessera/graph/ops"
)

// Gated trains the gates of a last layer gated, which aux_k may follow, to find the units that reconstruct the target, which is what the output
// is compared with, by default the images:
//
//	mean over pixels and batch of (target - (z A + b))²
//
// z = max(0, gate) is published by the layer; the atoms A and the bias b of the decoder, which is taken to be linear, have no
// gradient. The weight in the source is 1 beside mse. Source: Rajamanoharan et al., Improving dictionary learning with gated
// sparse autoencoders, 2024.
type Gated struct{}

func init() {
	Registry.Register("gated", "squared error of what the gates of a layer gated reconstruct", func() Loss { return &Gated{} })
}

func (*Gated) On() string { return Code }

func (*Gated) Reads() Reads {
	return Reads{Atoms: true, Published: []string{"gate"}, PublishedBy: "gated", Values: []string{Output, Code}, Held: []string{Output, Code, Atoms}}
}

func (*Gated) Build(v Values) (*gorgonia.Node, error) {
	gate, err := v.Published("gate")
	if err != nil {
		return nil, err
	}
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	output := c.Do("output", func() (*gorgonia.Node, error) { return v.Value(Output) })
	code := c.Do("code", func() (*gorgonia.Node, error) { return v.Value(Code) })
	bias := c.Sub(output, c.MatMul(code, d.Atoms))
	return c.Mean(c.Square(c.Sub(c.Sub(d.Images, bias), c.MatMul(gate, d.Atoms)))), c.Err()
}
