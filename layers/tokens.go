package layers

import (
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
