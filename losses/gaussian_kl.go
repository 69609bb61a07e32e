package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// GaussianKL is the Kullback-Leibler divergence of the code distributions of a gaussian layer from N(0, 1), in nats: the mean
// over the images of the sum over the units j of
//
//	1/2 (exp(v_j) + m_j² - 1 - v_j)
//
// where m is the mean and v the log variance that the gaussian layer publishes. `on` names the output of this layer; the
// default is the encoder's last layer. With free_bits b > 0 the sum is over max(b, mean over the batch of the divergence of
// unit j): a unit whose mean divergence is below b nats has no gradient from this term.
//
// With bce of weight = the number of pixels and a gaussian_kl of weight 1, the objective is the negative evidence lower bound of
// an image, in nats. With mse, which is a mean over the pixels, and a weight of 2 σ² / pixels, it is that of a model with noise
// of variance σ², up to a factor and a constant. The metric elbo uses these relations. Sources: Kingma and Welling,
// Auto-encoding variational Bayes, 2014; free bits: Kingma et al., Improved variational inference with inverse autoregressive
// flow, 2016.
type GaussianKL struct{ FreeBits }

func init() {
	Registry.Register("gaussian_kl", "divergence of the layer gaussian from N(0, 1), of a variational auto-encoder", func() Loss { return &GaussianKL{} })
}

func (l *GaussianKL) Reads() Reads { return l.reads("mean", "log_variance") }

func (l *GaussianKL) Build(v Values) (*gorgonia.Node, error) {
	mean, err := v.Published("mean")
	if err != nil {
		return nil, err
	}
	logVariance, err := v.Published("log_variance")
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	twice := c.Sub(c.Add(c.Exp(logVariance), c.Square(mean)), c.Shift(logVariance, 1))
	return l.divergence(&c, twice, 0.5), c.Err()
}
