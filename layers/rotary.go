package layers

import (
	"math"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// rotary is the value of the key position of [Attention] and [Transformer] for turned queries and keys.
const rotary = "rotary"

// turned returns x (batch, tokens, features) with the features of each head turned by the place of their token.
func turned(s Scope, c *ops.Chain, x *gorgonia.Node, heads int) *gorgonia.Node {
	shape := x.Shape().Clone()
	half := shape[2] / heads / 2
	points := c.Reshape(x, shape[0]*shape[1]*heads, 2*half)
	across := c.Reshape(c.Join(c.Neg(c.Columns(points, half, half)), c.Columns(points, 0, half)), shape...)
	times := func(x *gorgonia.Node, name string) *gorgonia.Node {
		table := s.Parameter(name)
		if place := s.Place(); place != nil {
			return c.Mul(x, c.Gather(table, place))
		}
		return c.Reshape(c.MulRow(c.Flatten(x), c.Reshape(table, table.Shape().TotalSize())), shape...)
	}
	return c.Add(times(x, "cosines"), times(across, "sines"))
}

// turns initialises the cosines or the sines of the angles of every token and feature, of heads of these features.
type turns struct {
	features int
	cosine   bool
}

func (t turns) Fill(values []float32, _, features int, r *rand.Rand) {
	t.FillMatrix(values, features, r)
}

func (t turns) FillMatrix(values []float32, features int, _ *rand.Rand) {
	for i := range values {
		pair := i % features % t.features % (t.features / 2)
		angle := float64(i/features) / math.Pow(10000, float64(2*pair)/float64(t.features))
		if values[i] = float32(math.Sin(angle)); t.cosine {
			values[i] = float32(math.Cos(angle))
		}
	}
}
