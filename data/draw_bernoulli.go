package data

import "math/rand/v2"

// DrawBernoulli draws every value: 1 with the given probability, otherwise 0.
type DrawBernoulli struct {
	Shaped
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"probability of a 1"`
}

func init() {
	Draws.Register("bernoulli", "1 with a probability, else 0: masks", func() Draw { return &DrawBernoulli{Probability: 0.5} })
}

func (b *DrawBernoulli) Column(other func(string) (Column, bool)) (Column, error) {
	return b.Of(Whole, other)
}

func (b *DrawBernoulli) Draw(dst []float32, _ Drawing, r *rand.Rand) {
	for i := range dst {
		if dst[i] = 0; r.Float64() < b.Probability {
			dst[i] = 1
		}
	}
}
