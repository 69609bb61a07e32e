package layers

import (
	"math/rand/v2"

	"tessera/config/part"
)

// Uniform draws from U(low, high).
type Uniform struct {
	Low  float64 `toml:"low" doc:"smallest value"`
	High float64 `toml:"high" doc:"largest value"`
}

func init() {
	Inits.Register("uniform", "U(low, high)", func() Init { return &Uniform{Low: -0.05, High: 0.05} })
}

// Check returns an error if high < low.
func (u *Uniform) Check() error {
	if u.High < u.Low {
		return part.KeyErrorf("high", "got %v, want >= low (%v)", u.High, u.Low)
	}
	return nil
}

func (u *Uniform) Fill(w []float32, _, _ int, r *rand.Rand) { fillUniform(w, u.Low, u.High, r) }

// fillUniform draws from U(low, high).
func fillUniform(w []float32, low, high float64, r *rand.Rand) {
	for i := range w {
		w[i] = float32(low + (high-low)*r.Float64())
	}
}
