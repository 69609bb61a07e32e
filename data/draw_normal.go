package data

import "math/rand/v2"

// DrawNormal draws every value from N(mean, stddev²).
type DrawNormal struct {
	Shaped
	Mean   float64 `toml:"mean" doc:"mean"`
	Stddev float64 `toml:"stddev" want:">= 0" doc:"standard deviation"`
}

func init() {
	Draws.Register("normal", "values from N(mean, stddev²): noise, the input of a generator", func() Draw { return &DrawNormal{Stddev: 1} })
}

func (n *DrawNormal) Draw(dst []float32, _ Drawing, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(n.Mean + n.Stddev*r.NormFloat64())
	}
}
