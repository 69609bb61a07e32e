package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// GaussianKL is the Kullback-Leibler divergence of the code distributions of a gaussian layer from N(0, 1), the mean over the
// images of
//
//	1/2 sum over the units j of exp(v_j) + m_j² - 1 - v_j
//
// where m is the mean and v the log variance that the gaussian layer publishes. `on` names the output of this layer; the
// default is the encoder's last layer. With mse, which is a mean over the pixels, and a weight of 1 / (pixels σ²), the
// objective is the negative evidence lower bound, up to a factor and a constant, of a model with noise variance σ². Source:
// Kingma and Welling, Auto-encoding variational Bayes, 2014.
type GaussianKL struct{}

func init() {
	Registry.Register("gaussian_kl", "divergence of the layer gaussian from N(0, 1), of a variational auto-encoder", func() Loss { return &GaussianKL{} })
}

// On implements [Loss].
func (*GaussianKL) On() string { return Code }

// Reads implements [Loss].
func (*GaussianKL) Reads() Reads { return Reads{Published: []string{"mean", "log_variance"}} }

// Build implements [Loss].
func (*GaussianKL) Build(v Values) (*gorgonia.Node, error) {
	mean, err := v.Published("mean")
	if err != nil {
		return nil, err
	}
	logVariance, err := v.Published("log_variance")
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	sum := c.Sum(c.Sub(c.Add(c.Exp(logVariance), c.Square(mean)), c.Shift(logVariance, 1)))
	return c.Scale(sum, 0.5/float64(mean.Shape()[0])), c.Err()
}
