package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
)

// tokensOf reads a shape as tokens: its last axis holds the features of one, the axes before it count them. A vector is one
// token, an image (height, width) has its rows as tokens, one with channels its pixels.
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
