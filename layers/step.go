package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Stepping is implemented by layers whose output for a token depends on the tokens up to it only. A graph can then compute one token of a sequence
// alone, from what the layers keep of the tokens before it: inputs (1, ...) in place of (tokens, ...). [Scope.Place] and [Scope.Past] then return nodes.
// Models of other layers are computed for whole sequences.
type Stepping interface {
	Layer
	// Steps reports whether this holds for inputs of shape in, whose first axis is that of the tokens.
	Steps(in []int) bool
}

// Steps reports whether l can compute one token alone, for inputs of shape in.
func Steps(l Layer, in []int) bool {
	s, ok := l.(Stepping)
	return ok && s.Steps(in)
}

func (pointwise) Steps([]int) bool { return true }

// Steps implements [Stepping]: the axis of the tokens is not the one that the softmax is over.
func (Softmax) Steps(in []int) bool { return len(in) > 1 }

func (*Embedding) Steps([]int) bool        { return true }
func (*LayerNorm) Steps(in []int) bool     { return len(in) > 1 }
func (*TokenDense) Steps(in []int) bool    { return len(in) > 1 }
func (*LayerScale) Steps(in []int) bool    { return len(in) > 1 }
func (*Position) Steps(in []int) bool      { return len(in) == 2 }
func (a *Attention) Steps(in []int) bool   { return a.Causal && len(in) == 2 }
func (t *Transformer) Steps(in []int) bool { return t.Causal && t.Keys == "" && len(in) == 2 }

func (r *Residual) Steps(in []int) bool {
	shapes, err := StackShapes(r.Layers, in)
	return err == nil && !slices.ContainsFunc(shapes, func(s []int) bool { return s[0] != in[0] }) &&
		!slices.ContainsFunc(r.Layers, func(l Layer) bool { return !Steps(l, in) })
}

// step is the attention of one token to itself and to those before it, whose keys and values the graph keeps. Their weights are published in this order.
func (a *Attention) step(s Scope, c *ops.Chain, query, key, value *gorgonia.Node) (weights, mixed *gorgonia.Node) {
	batch, features := key.Shape()[0], key.Shape()[2]
	keys, keepKey := s.Past(features)
	values, keepValue := s.Past(features)
	keepKey(key)
	keepValue(value)
	past := keys.Shape()[1]
	own := ops.Attention{Tokens: 1, Features: features, Heads: a.Heads}
	before := own
	before.Others = past
	scores := c.Join(
		c.Reshape(c.Do("own score", func() (*gorgonia.Node, error) { return own.Scores(query, key) }), batch*a.Heads, 1),
		c.Reshape(c.Do("scores", func() (*gorgonia.Node, error) { return before.Scores(query, keys) }), batch*a.Heads, past))
	seen := c.Do("seen", func() (*gorgonia.Node, error) { return ops.FirstPlaces(c.Shift(s.Place(), 1), 1+past) })
	weights = c.Do("softmax", func() (*gorgonia.Node, error) {
		return ops.MaskedSoftmax(c.Reshape(scores, batch, a.Heads, 1, 1+past), seen)
	})
	of := func(g ops.Attention, from, count int, x *gorgonia.Node) *gorgonia.Node {
		return c.Do("mix", func() (*gorgonia.Node, error) {
			return g.Mix(c.Reshape(c.Columns(c.Reshape(weights, batch*a.Heads, 1+past), from, count), batch, a.Heads, 1, count), x)
		})
	}
	return weights, c.Add(of(own, 0, 1, value), of(before, 1, past, values))
}
