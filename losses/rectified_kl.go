package losses

import (
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// RectifiedKL is the Kullback-Leibler divergence of the code distributions of a rectified_gaussian layer from the prior, in nats.
// It is exact, not an estimate: the mean over the images of the sum over the units of
//
//	F(-t) log(F(-t) / F(-p)) + 1/2 (((m - p)² - v) F(t) + 2 (m - p) s f(t) + (s² - 1) (F(t) - t f(t)))
//
// where F and f are the distribution function and the density of N(0, 1), m is the mean, v the log variance, s = exp(v/2) and
// t = m/s. The first part compares the probabilities of 0, the other part the densities above 0. p is the mean of the unit's
// prior before rectification. `on` names the output of the layer; the default is the encoder's last layer. free_bits has the
// meaning it has in gaussian_kl.
type RectifiedKL struct{ FreeBits }

func init() {
	Registry.Register("rectified_kl", "divergence of the layer rectified_gaussian from its prior, of parts-vae", func() Loss { return &RectifiedKL{} })
}

func (l *RectifiedKL) Reads() Reads { return l.reads("mean", "log_variance", "prior_mean") }

// tinyProbability keeps logarithms of probabilities finite in float32.
const tinyProbability = 1e-30

func (l *RectifiedKL) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	published := func(name string) *gorgonia.Node {
		return c.Do(name, func() (*gorgonia.Node, error) { return v.Published(name) })
	}
	mean, logVariance, prior := published("mean"), published("log_variance"), published("prior_mean")
	cdf := func(x *gorgonia.Node) *gorgonia.Node {
		return c.Do("cdf", func() (*gorgonia.Node, error) { return ops.NormalCDF(x) })
	}
	log := func(probability *gorgonia.Node) *gorgonia.Node { return c.Log(c.Shift(probability, tinyProbability)) }
	t := c.Mul(mean, c.Exp(c.Scale(logVariance, -0.5)))
	zero, active := cdf(c.Neg(t)), cdf(t)
	density := c.Scale(c.Exp(c.Scale(c.Square(t), -0.5)), 1/math.Sqrt(2*math.Pi))
	s, d := c.Exp(c.Scale(logVariance, 0.5)), c.Sub(mean, prior)
	atZero := c.Mul(zero, c.Sub(log(zero), log(cdf(c.Neg(prior)))))
	above := c.Mul(c.Sub(c.Square(d), logVariance), active)
	above = c.Add(above, c.Scale(c.Mul(c.Mul(d, s), density), 2))
	above = c.Add(above, c.Mul(c.Shift(c.Exp(logVariance), -1), c.Sub(active, c.Mul(t, density))))
	return l.divergence(&c, c.Add(atZero, c.Scale(above, 0.5)), 1), c.Err()
}
