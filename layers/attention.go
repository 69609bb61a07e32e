package layers

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

var _ Reader = (*Attention)(nil)

// Attention is multi-head self-attention. With H heads of d = features/H features each, it maps the tokens X of an input to
//
//	Z_h = softmax(X Q_h (X K_h)ᵀ / sqrt(d)) X V_h,    y = [Z_1 ... Z_H] W_o
//
// where the softmax is over each row. Tokens lie along the input's last axis: the patches of [Patches], the rows of an image
// (height, width), or the pixels of an image with channels. The output has the input's shape. The layer publishes the softmax
// under the name attention, of shape (heads, tokens, tokens). Parameters: query, key and value, whose columns are ordered by
// head, and output, all of shape (features, features). With bias = true there are also query_bias, value_bias and output_bias,
// which start at 0; a bias of the keys would have no effect. Vaswani et al., Attention Is All You Need, 2017.
//
// With keys = "VALUE" the layer is cross-attention: keys and values are computed from the tokens of another value of the
// model, such as the output of a layer of the encoder, as X_other K_h and X_other V_h. The number of tokens and of features of
// this value may differ. key and value then have the shape (features of the other tokens, features), and the published weights
// have the shape (heads, tokens, other tokens).
//
// With mask = "VALUE" a token gives a key and a value only if its mask is 1. The mask contains one number for each of these
// tokens, for example for sequences of different lengths (see [FirstTokens]). The attention weights of the other tokens are
// exactly 0.
//
// With causal = true a token attends to itself and the tokens before it only, as in a model of language that predicts the next token from those
// before. Padding after the last token then needs no mask.
//
// With position = "rotary" the queries and the keys of token p are turned: of the d features of a head, feature i < d/2 and feature i + d/2 are the
// coordinates of a point that is turned by the angle p / 10000^(2i/d). Scores then depend on the distance of two tokens, and no layer [Position] is needed. Su
// et al., RoFormer: Enhanced transformer with rotary position embedding, 2021. State: cosines and sines, (tokens, features), constant.
type Attention struct {
	Heads    int    `toml:"heads" want:"> 0" doc:"number of attention heads"`
	Bias     bool   `toml:"bias" doc:"learn biases of queries, values and outputs"`
	Keys     string `toml:"keys" doc:"name of the value whose tokens give keys and values; empty: the input itself"`
	Mask     string `toml:"mask" optional:"true" doc:"name of the value that is 1 for the tokens to attend to and 0 for others; empty: all"`
	Causal   bool   `toml:"causal" optional:"true" doc:"a token attends to itself and the tokens before it only"`
	Position string `toml:"position" oneof:"none rotary" doc:"rotary: queries and keys are turned by the place of their token, so that weights read distances"`
	Init     Init   `toml:"init" doc:"initial values of the weights"`

	other, mask []int // shapes of the values that keys and mask name
}

func init() {
	Registry.Register("attention", "multi-head self-attention over tokens", func() Layer {
		return &Attention{Heads: 4, Position: "none", Init: &GlorotUniform{}}
	})
}

func (a *Attention) Reads() []Reading {
	return append(tokensRead(a.Keys, a.other), maskRead("mask", a.Mask, a.mask)...)
}

func (a *Attention) Receive(shapes [][]int) {
	if a.Keys != "" {
		a.other, shapes = shapes[0], shapes[1:]
	}
	if a.Mask != "" {
		a.mask = shapes[0]
	}
}

// others returns the shape of the tokens for keys and values, nil if it is unknown.
func (a *Attention) others(in []int) []int {
	if a.Keys == "" {
		return in
	}
	return a.other
}

// Check returns an error for keys or a mask of tokens after which nothing is read.
func (a *Attention) Check() error {
	if a.Causal && (a.Keys != "" || a.Mask != "") {
		return part.KeyErrorf("causal", "reads the tokens of the input before a token: leave out keys and mask")
	}
	if a.Position == rotary && a.Keys != "" {
		return part.KeyErrorf("position", "got %q with keys: tokens of another value have no distance to those of the input", a.Position)
	}
	return nil
}

// geometry returns the geometry of the attention of tokens of shape in to tokens of shape other.
func (a *Attention) geometry(in, other []int) (ops.Attention, error) {
	if len(in) < 2 {
		return ops.Attention{}, fmt.Errorf("got an input of shape %v, want tokens (tokens, features)", in)
	}
	tokens, features := tokensOf(in)
	if a.Heads < 1 || features%a.Heads != 0 {
		return ops.Attention{}, part.KeyErrorf("heads", "%d do not divide the %d features of a token", a.Heads, features)
	}
	if a.Position == rotary && features/a.Heads%2 != 0 {
		return ops.Attention{}, part.KeyErrorf("position", "got %q and %d features of a head (%d of a token, heads = %d), want an even number", a.Position, features/a.Heads, features, a.Heads)
	}
	g := ops.Attention{Tokens: tokens, Features: features, Heads: a.Heads, Causal: a.Causal}
	if a.Keys == "" {
		return g, nil
	}
	if len(other) < 2 {
		return g, part.KeyErrorf("keys", "%q has the shape %v, want tokens (tokens, features)", a.Keys, other)
	}
	g.Others, _ = tokensOf(other)
	return g, nil
}

func (a *Attention) OutputShape(in []int) ([]int, error) {
	if _, err := a.geometry(in, a.others(in)); err != nil {
		return nil, err
	}
	if tokens, _ := tokensOf(a.others(in)); a.Mask != "" {
		return in, fitsTokens("mask", a.Mask, a.mask, tokens)
	}
	return in, nil
}

func (a *Attention) Parameters(in []int) []Parameter {
	_, n := tokensOf(in)
	_, other := tokensOf(a.others(in))
	var list []Parameter
	for _, name := range []string{"query", "key", "value", "output"} {
		from := n
		if name == "key" || name == "value" {
			from = other
		}
		list = append(list, Parameter{Name: name, Shape: []int{from, n}, Init: a.Init, FanIn: from, FanOut: n})
		if a.Bias && name != "key" {
			list = append(list, Parameter{Name: name + "_bias", Shape: []int{n}, Init: &Zeros{}, FanIn: n, FanOut: n})
		}
	}
	if a.Position == rotary {
		for _, name := range []string{"cosines", "sines"} {
			list = append(list, Parameter{Name: name, Shape: slices.Clone(in), Init: turns{max(2, n/max(1, a.Heads)), name == "cosines"}, FanIn: n, FanOut: n, State: true})
		}
	}
	return list
}

// Largest implements [Expanding]: the attention weights of all pairs of tokens.
func (a *Attention) Largest(in []int) int {
	tokens, _ := tokensOf(in)
	others, _ := tokensOf(a.others(in))
	return a.Heads * tokens * others
}

func (a *Attention) Expands(in []int) (what, advice string) {
	tokens, _ := tokensOf(in)
	others, _ := tokensOf(a.others(in))
	return fmt.Sprintf("%d x %d x %d weights between tokens", a.Heads, tokens, others), "make larger patches, take fewer heads"
}

// Publishes implements [Publisher]: the weights of each head, one row for every token.
func (a *Attention) Publishes(in []int) []Value {
	tokens, _ := tokensOf(in)
	others, _ := tokensOf(a.others(in))
	return []Value{{Name: "attention", Shape: []int{a.Heads, tokens, others}}}
}

func (a *Attention) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	other := x
	if a.Keys != "" {
		other = s.Value(a.Keys)
	}
	g, err := a.geometry(x.Shape()[1:], other.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("attention: %w", err)
	}
	var c ops.Chain
	batch := x.Shape()[0]
	rows := c.Reshape(x, batch*g.Tokens, g.Features)
	others, rowsOfOthers := g.Tokens, rows
	if a.Keys != "" {
		tokens, features := tokensOf(other.Shape()[1:])
		others, rowsOfOthers = tokens, c.Reshape(other, batch*tokens, features)
	}
	mapped := func(rows *gorgonia.Node, name string) *gorgonia.Node {
		var bias *gorgonia.Node
		if a.Bias && name != "key" {
			bias = s.Parameter(name + "_bias")
		}
		return mapTokens(&c, rows, s.Parameter(name), bias)
	}
	sequence := func(rows *gorgonia.Node, tokens int) *gorgonia.Node {
		return c.Reshape(rows, batch, tokens, g.Features)
	}
	query := sequence(c.Scale(mapped(rows, "query"), 1/math.Sqrt(float64(g.Features/g.Heads))), g.Tokens)
	key, value := sequence(mapped(rowsOfOthers, "key"), others), sequence(mapped(rowsOfOthers, "value"), others)
	if a.Position == rotary {
		query, key = turned(s, &c, query, a.Heads), turned(s, &c, key, a.Heads)
	}
	if a.Causal && s.Place() != nil {
		weights, mixed := a.step(s, &c, query, key, value)
		if c.Err() == nil {
			s.Publish("attention", weights)
		}
		return c.Reshape(mapped(c.Reshape(mixed, batch, g.Features), "output"), x.Shape()...), c.Err()
	}
	scores := c.Do("scores", func() (*gorgonia.Node, error) { return g.Scores(query, key) })
	weights := c.Do("softmax", func() (*gorgonia.Node, error) {
		if a.Causal {
			return ops.CausalSoftmax(scores)
		}
		if a.Mask == "" {
			return ops.Softmax(scores)
		}
		mask, err := ops.Reshape(s.Value(a.Mask), batch, others)
		if err != nil {
			return nil, err
		}
		return ops.MaskedSoftmax(scores, mask)
	})
	if c.Err() == nil {
		s.Publish("attention", weights)
	}
	mixed := c.Do("mix", func() (*gorgonia.Node, error) { return g.Mix(weights, value) })
	return c.Reshape(mapped(c.Reshape(mixed, batch*g.Tokens, g.Features), "output"), x.Shape()...), c.Err()
}
