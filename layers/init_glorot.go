package layers

import (
	"math"
	"math/rand/v2"
)

// GlorotUniform draws from U(-a, a), a = sqrt(6 / (fanIn + fanOut)). Glorot and Bengio, Understanding the Difficulty of
// Training Deep Feedforward Neural Networks, 2010. It is the default init of every layer except position and unrolled.
type GlorotUniform struct{}

// GlorotNormal draws from N(0, 2 / (fanIn + fanOut)), with the variance of [GlorotUniform].
type GlorotNormal struct{}

func init() {
	Inits.Register("glorot_uniform", "U(-a, a), a = sqrt(6/(fan_in+fan_out))", func() Init { return &GlorotUniform{} })
	Inits.Register("glorot_normal", "N(0, s²), s = sqrt(2/(fan_in+fan_out))", func() Init { return &GlorotNormal{} })
}

func (GlorotUniform) Fill(w []float32, fanIn, fanOut int, r *rand.Rand) {
	a := math.Sqrt(6 / float64(fanIn+fanOut))
	fillUniform(w, -a, a, r)
}

func (GlorotNormal) Fill(w []float32, fanIn, fanOut int, r *rand.Rand) {
	fillNormal(w, 0, math.Sqrt(2/float64(fanIn+fanOut)), r)
}
