package data

import "math/rand/v2"

// DrawConstant sets every value to the same number. It is the target for a term with the same target for all samples, for
// example of a discriminator.
type DrawConstant struct {
	Shaped
	Value float64 `toml:"value" doc:"the number"`
}

func init() {
	Draws.Register("constant", "the same number for all samples: the target of a judge", func() Draw { return &DrawConstant{} })
}

func (c *DrawConstant) Draw(dst []float32, _ Drawing, _ *rand.Rand) {
	for i := range dst {
		dst[i] = float32(c.Value)
	}
}
