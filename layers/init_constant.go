package layers

import "math/rand/v2"

// Zeros sets every value to 0.
type Zeros struct{}

// Constant sets every value to the same number.
type Constant struct {
	Value float64 `toml:"value" doc:"value of every element" required:"true"`
}

func init() {
	Inits.Register("zeros", "0", func() Init { return &Zeros{} })
	Inits.Register("constant", "value", func() Init { return &Constant{} })
}

func (Zeros) Fill(w []float32, _, _ int, _ *rand.Rand) { clear(w) }

func (c *Constant) Fill(w []float32, _, _ int, _ *rand.Rand) {
	for i := range w {
		w[i] = float32(c.Value)
	}
}
