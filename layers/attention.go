package layers

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/ops"
	"tessera/part"
)

// Attention is multi-head self-attention. With H heads of d = features/H features each, it maps the tokens X of an input to
//
//	Z_h = softmax(X Q_h (X K_h)ᵀ / sqrt(d)) X V_h,    y = [Z_1 ... Z_H] W_o
//
// where the softmax is over each row. Tokens lie along the input's last axis: patches of [Patches], rows of an image
// (height, width), pixels of one with channels. The output has the input's shape. The layer publishes the softmax under the name attention, of shape (heads, tokens, tokens). Parameters: query, key and value, whose
// columns are ordered by head, and output, all of shape (features, features); with bias = true also query_bias, value_bias
// and output_bias, which start at 0 (a bias of the keys would have no effect). Vaswani et al., Attention Is All You Need,
// 2017.
type Attention struct {
	Heads int  `toml:"heads" want:"> 0" doc:"number of attention heads"`
	Bias  bool `toml:"bias" doc:"learn biases of queries, values and outputs"`
	Init  Init `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("attention", "multi-head self-attention over tokens", func() Layer {
		return &Attention{Heads: 4, Init: &GlorotUniform{}}
	})
}

// geometry describes the attention over inputs of shape in.
func (a *Attention) geometry(in []int) (ops.Attention, error) {
	if len(in) < 2 {
		return ops.Attention{}, fmt.Errorf("got an input of shape %v, want tokens (tokens, features)", in)
	}
	tokens, features := tokensOf(in)
	if a.Heads < 1 || features%a.Heads != 0 {
		return ops.Attention{}, part.KeyErrorf("heads", "%d do not divide the %d features of a token", a.Heads, features)
	}
	return ops.Attention{Tokens: tokens, Features: features, Heads: a.Heads}, nil
}

// OutputShape implements [Layer].
func (a *Attention) OutputShape(in []int) ([]int, error) {
	if _, err := a.geometry(in); err != nil {
		return nil, err
	}
	return in, nil
}

// Parameters implements [Layer].
func (a *Attention) Parameters(in []int) []Parameter {
	_, n := tokensOf(in)
	var list []Parameter
	for _, name := range []string{"query", "key", "value", "output"} {
		list = append(list, Parameter{Name: name, Shape: []int{n, n}, Init: a.Init, FanIn: n, FanOut: n})
		if a.Bias && name != "key" {
			list = append(list, Parameter{Name: name + "_bias", Shape: []int{n}, Init: &Zeros{}, FanIn: n, FanOut: n})
		}
	}
	return list
}

// Largest implements [Expanding]: the attention weights of all pairs of tokens.
func (a *Attention) Largest(in []int) int {
	tokens, _ := tokensOf(in)
	return a.Heads * tokens * tokens
}

// Expands implements [Expanding].
func (a *Attention) Expands(in []int) (what, advice string) {
	tokens, _ := tokensOf(in)
	return fmt.Sprintf("%d x %d x %d weights between tokens", a.Heads, tokens, tokens), "make larger patches, take fewer heads"
}

// Publishes implements [Publisher]: the weights of each head, one row for every token.
func (a *Attention) Publishes(in []int) []Value {
	tokens, _ := tokensOf(in)
	return []Value{{"attention", []int{a.Heads, tokens, tokens}}}
}

// Apply implements [Layer].
func (a *Attention) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	g, err := a.geometry(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("attention: %w", err)
	}
	var c ops.Chain
	batch := x.Shape()[0]
	rows := c.Reshape(x, batch*g.Tokens, g.Features)
	mapped := func(rows *gorgonia.Node, name string) *gorgonia.Node {
		var bias *gorgonia.Node
		if a.Bias && name != "key" {
			bias = s.Parameter(name + "_bias")
		}
		return mapTokens(&c, rows, s.Parameter(name), bias)
	}
	sequence := func(rows *gorgonia.Node) *gorgonia.Node { return c.Reshape(rows, batch, g.Tokens, g.Features) }
	query := sequence(c.Scale(mapped(rows, "query"), 1/math.Sqrt(float64(g.Features/g.Heads))))
	key, value := sequence(mapped(rows, "key")), sequence(mapped(rows, "value"))
	scores := c.Do("scores", func() (*gorgonia.Node, error) { return g.Scores(query, key) })
	weights := c.Do("softmax", func() (*gorgonia.Node, error) { return ops.Softmax(scores) })
	if c.Err() == nil {
		s.Publish("attention", weights)
	}
	mixed := c.Do("mix", func() (*gorgonia.Node, error) { return g.Mix(weights, value) })
	return c.Reshape(mapped(c.Reshape(mixed, batch*g.Tokens, g.Features), "output"), x.Shape()...), c.Err()
}
