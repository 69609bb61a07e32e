package layers

import "math/rand/v2"

// Normal draws from N(mean, stddev²).
type Normal struct {
	Mean   float64 `toml:"mean" doc:"mean"`
	Stddev float64 `toml:"stddev" want:">= 0" doc:"standard deviation"`
}

func init() {
	Inits.Register("normal", "N(mean, stddev²)", func() Init { return &Normal{Stddev: 0.05} })
}

func (n *Normal) Fill(w []float32, _, _ int, r *rand.Rand) { fillNormal(w, n.Mean, n.Stddev, r) }

// fillNormal draws from N(mean, stddev²).
func fillNormal(w []float32, mean, stddev float64, r *rand.Rand) {
	for i := range w {
		w[i] = float32(mean + stddev*r.NormFloat64())
	}
}
