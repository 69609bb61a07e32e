package parts

import (
	"math"
	"math/rand/v2"

	"tessera/data"
)

// Lognormal draws exp(z), where z has the distribution N(mean, stddev²): the noise levels of Karras et al., 2022.
type Lognormal struct {
	data.Shaped
	Mean   float64 `toml:"mean" doc:"mean of the logarithm"`
	Stddev float64 `toml:"stddev" want:">= 0" doc:"standard deviation of the logarithm"`
}

func init() {
	data.Draws.Register("lognormal", "exp(z), z from N(mean, stddev²)", func() data.Draw { return &Lognormal{Mean: -1.2, Stddev: 1.2} })
}

// Column implements [data.Draw].
func (l *Lognormal) Column(other func(name string) (data.Column, bool)) (data.Column, error) {
	return l.Of(data.Float32, other)
}

// Draw implements [data.Draw].
func (l *Lognormal) Draw(dst []float32, _ data.Drawing, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(math.Exp(l.Mean + l.Stddev*r.NormFloat64()))
	}
}
