package layers

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
)

// tokensOf interprets a shape as tokens: the last axis holds the features of a token, the other axes index the tokens. A
// vector is one token; the tokens of an image (height, width) are its rows, of an image with channels its pixels.
func tokensOf(shape []int) (tokens, features int) {
	features = shape[len(shape)-1]
	return volume.Of(shape) / features, features
}

// mapTokens returns x (tokens, features) W, plus bias unless that is nil.
func mapTokens(c *ops.Chain, x, weight, bias *gorgonia.Node) *gorgonia.Node {
	y := c.MatMul(x, weight)
	if bias == nil {
		return y
	}
	return c.AddRow(y, bias)
}

// scaleAndShift declares the parameters of a normalisation of n channels.
func scaleAndShift(n int) []Parameter {
	return []Parameter{
		{Name: "scale", Shape: []int{n}, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1},
		{Name: "shift", Shape: []int{n}, Init: &Constant{Value: 0}, FanIn: 1, FanOut: 1},
	}
}

// scaledAndShifted applies it to normalised values.
func scaledAndShifted(s Scope, y *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return addChannels(&c, mulChannels(&c, y, s.Parameter("scale")), s.Parameter("shift")), c.Err()
}

// maskSampler draws 0 with probability drop and keep otherwise.
type maskSampler struct{ drop, keep float64 }

// Sample implements [ops.Sampler].
func (m maskSampler) Sample(dst []float32, r *rand.Rand) {
	keep := float32(m.keep)
	for i := range dst {
		dst[i] = keep
		if r.Float64() < m.drop {
			dst[i] = 0
		}
	}
}
