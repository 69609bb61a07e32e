package layers

import "math/rand/v2"

// Variational is implemented by layers that draw their output, in training, from a distribution q(z|x) that depends on the
// input, and that have a prior p(z). The published values describe q.
type Variational interface {
	Publisher
	// DrawFrom draws z from q and writes it to dst. It returns log p(z) - log q(z), in nats. values contains the published
	// values for one sample, by name.
	DrawFrom(dst []float32, values map[string][]float32, r *rand.Rand) (logRatio float64)
	// Divergence returns the Kullback-Leibler divergence of q from p, in nats.
	Divergence(values map[string][]float32) float64
}
