package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// L0 is the mean over the images of the number of active units of a jump_relu layer: the sum of the published value active.
// `on` names the output of this layer; the default is the encoder's last layer. The gradient with respect to the thresholds,
// of active and inactive units, is the layer's estimate. Source: Rajamanoharan et al., Jumping ahead: improving reconstruction
// fidelity with JumpReLU sparse autoencoders, 2024.
type L0 struct{}

func init() {
	Registry.Register("l0", "mean over samples of the number of active units of the layer jump_relu", func() Loss { return &L0{} })
}

func (*L0) On() string   { return Code }
func (*L0) Reads() Reads { return Reads{Published: []string{"active"}} }

func (*L0) Build(v Values) (*gorgonia.Node, error) {
	active, err := v.Published("active")
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	return c.Scale(c.Sum(active), 1/float64(active.Shape()[0])), c.Err()
}
