package layers

import (
	"math"
	"math/rand/v2"
)

// HeUniform draws from U(-a, a), a = sqrt(6 / fanIn). It is intended for rectified units. He et al., Delving Deep into
// Rectifiers, 2015.
type HeUniform struct{}

// HeNormal draws from N(0, 2 / fanIn), with the variance of [HeUniform].
type HeNormal struct{}

func init() {
	Inits.Register("he_uniform", "U(-a, a), a = sqrt(6/fan_in)", func() Init { return &HeUniform{} })
	Inits.Register("he_normal", "N(0, s²), s = sqrt(2/fan_in)", func() Init { return &HeNormal{} })
}

func (HeUniform) Fill(w []float32, fanIn, _ int, r *rand.Rand) {
	a := math.Sqrt(6 / float64(fanIn))
	fillUniform(w, -a, a, r)
}

func (HeNormal) Fill(w []float32, fanIn, _ int, r *rand.Rand) {
	fillNormal(w, 0, math.Sqrt(2/float64(fanIn)), r)
}
