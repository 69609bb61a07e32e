package parts

import (
	"math"
	"math/rand/v2"

	"tessera/layers"
)

// Signs draws +a or -a, each with probability 1/2, where a = scale / sqrt(fan in).
type Signs struct {
	Scale float64 `toml:"scale" want:"> 0" doc:"size of the values, times the root of the number of inputs"`
}

func init() {
	layers.Inits.Register("signs", "+a or -a, a = scale / sqrt(fan_in)", func() layers.Init { return &Signs{Scale: 1} })
}

// Fill implements [layers.Init].
func (s *Signs) Fill(w []float32, fanIn, _ int, r *rand.Rand) {
	a := float32(s.Scale / math.Sqrt(float64(fanIn)))
	for i := range w {
		if w[i] = a; r.IntN(2) == 0 {
			w[i] = -a
		}
	}
}
