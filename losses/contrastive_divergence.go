package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// ContrastiveDivergence is the difference between the mean free energies of the images and of samples of a layer rbm, in nats:
// the mean over the images of
//
//	energy - sample_energy
//
// The samples are constants. The gradient is then that of contrastive divergence, or of persistent contrastive divergence if the
// layer has persistent chains: it estimates the gradient of minus the mean log-likelihood of the images. The value itself is no
// likelihood, and may be negative: use the metrics rbm_exact and rbm_ais. `on` names the output of the layer; the default is the
// encoder's last layer. Sources: Hinton, Training products of experts by minimizing contrastive divergence, 2002; Tieleman,
// Training restricted Boltzmann machines using approximations to the likelihood gradient, 2008.
type ContrastiveDivergence struct{}

func init() {
	Registry.Register("contrastive_divergence", "free energy of the data minus that of drawn samples, of the layer rbm", func() Loss {
		return &ContrastiveDivergence{}
	})
}

func (*ContrastiveDivergence) On() string { return Code }

func (*ContrastiveDivergence) Reads() Reads {
	return Reads{Published: []string{"energy", "sample_energy"}}
}

func (*ContrastiveDivergence) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	published := func(name string) *gorgonia.Node {
		return c.Do(name, func() (*gorgonia.Node, error) { return v.Published(name) })
	}
	return c.Sub(c.Mean(published("energy")), c.Mean(published("sample_energy"))), c.Err()
}
