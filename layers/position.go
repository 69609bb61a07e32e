package layers

import (
	"math"
	"math/rand/v2"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Position adds an embedding of the position to its input, y = x + E. Layers that treat all tokens equally can then
// distinguish positions. The parameter embedding has the input's shape. It is learned, from N(0, 0.02²); Dosovitskiy et al.,
// An Image is Worth 16x16 Words, 2021. With values = "sinusoidal" it is constant: for token p and feature f of F
//
//	E(p, f) = sin(p / 10000^(f/F)) for an even f,    cos(p / 10000^((f-1)/F)) for an odd one
//
// as in Vaswani et al., Attention Is All You Need, 2017.
type Position struct {
	Values string `toml:"values" oneof:"learned sinusoidal" doc:"learned, or constant waves of the position"`
	Init   Init   `toml:"init" doc:"initial values of the learned embedding"`
}

func init() {
	Registry.Register("position", "adds an embedding of the position, learned or of waves, y = x + E", func() Layer {
		return &Position{Values: "learned", Init: &Normal{Stddev: 0.02}}
	})
}

func (*Position) OutputShape(in []int) ([]int, error) { return in, nil }

func (p *Position) Parameters(in []int) []Parameter {
	tokens, features := tokensOf(in)
	e := Parameter{Name: "embedding", Shape: slices.Clone(in), Init: p.Init, FanIn: tokens, FanOut: features}
	if p.Values == "sinusoidal" {
		e.Init, e.State = waves{}, true
	}
	return []Parameter{e}
}

// waves initialises a sinusoidal embedding.
type waves struct{}

func (w waves) Fill(values []float32, _, features int, r *rand.Rand) {
	w.FillMatrix(values, features, r)
}

func (waves) FillMatrix(values []float32, features int, _ *rand.Rand) {
	for i := range values {
		token, f := i/features, i%features
		angle := float64(token) / math.Pow(10000, float64(f-f%2)/float64(features))
		values[i] = float32(math.Sin(angle))
		if f%2 == 1 {
			values[i] = float32(math.Cos(angle))
		}
	}
}

func (*Position) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	embedding := s.Parameter("embedding")
	if place := s.Place(); place != nil {
		return c.Add(x, c.Gather(embedding, place)), c.Err()
	}
	y := c.AddRow(c.Flatten(x), c.Reshape(embedding, embedding.Shape().TotalSize()))
	return c.Reshape(y, x.Shape()...), c.Err()
}
