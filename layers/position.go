package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// Position adds a learned position embedding to its input, y = x + E. Layers that treat all tokens alike can then
// distinguish positions. The parameter embedding has the input's shape and is initialised from N(0, 0.02²). Dosovitskiy et
// al., An Image is Worth 16x16 Words, 2021.
type Position struct {
	Init Init `toml:"init" doc:"initial values of the embedding"`
}

func init() {
	Registry.Register("position", "adds a learned embedding of the position, y = x + E", func() Layer {
		return &Position{Init: &Normal{Stddev: 0.02}}
	})
}

// OutputShape implements [Layer].
func (*Position) OutputShape(in []int) ([]int, error) { return in, nil }

// Parameters implements [Layer].
func (p *Position) Parameters(in []int) []Parameter {
	tokens, features := tokensOf(in)
	return []Parameter{{Name: "embedding", Shape: slices.Clone(in), Init: p.Init, FanIn: tokens, FanOut: features}}
}

// Apply implements [Layer].
func (*Position) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	embedding := s.Parameter("embedding")
	y := c.AddRow(c.Flatten(x), c.Reshape(embedding, embedding.Shape().TotalSize()))
	return c.Reshape(y, x.Shape()...), c.Err()
}
