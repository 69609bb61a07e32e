package data

import (
	"math/rand/v2"

	"tessera/config/part"
)

// DrawUniform draws every value from U(low, high).
type DrawUniform struct {
	Shaped
	Low  float64 `toml:"low" doc:"smallest value"`
	High float64 `toml:"high" doc:"largest value"`
}

func init() {
	Draws.Register("uniform", "values from U(low, high): noise levels, smoothed targets", func() Draw { return &DrawUniform{High: 1} })
}

func (u *DrawUniform) Check() error {
	if u.High < u.Low {
		return part.KeyErrorf("high", "got %v, want >= low (%v)", u.High, u.Low)
	}
	return u.Shaped.Check()
}

func (u *DrawUniform) Draw(dst []float32, _ Drawing, r *rand.Rand) {
	for i := range dst {
		dst[i] = float32(u.Low + (u.High-u.Low)*r.Float64())
	}
}
