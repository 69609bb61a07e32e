package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Reader = (*TakeToken)(nil)

// ClassToken puts a learned token before the tokens of its input: (tokens, features) becomes (tokens + 1, features).
// Attention can collect a description of the whole image in this token, and [TakeToken] extracts it. The parameter token has
// shape (features). Devlin et al., BERT, 2019; Dosovitskiy et al., An Image is Worth 16x16 Words, 2021.
type ClassToken struct {
	Init Init `toml:"init" doc:"initial values of the token"`
}

func init() {
	Registry.Register("class_token", "puts a learned token before the tokens", func() Layer { return &ClassToken{Init: &Normal{Stddev: 0.02}} })
}

// sequenceOf returns the numbers of tokens and features of an input (tokens, features).
func sequenceOf(in []int) (tokens, features int, err error) {
	if len(in) != 2 {
		return 0, 0, fmt.Errorf("got an input of shape %v, want tokens (tokens, features)", in)
	}
	return in[0], in[1], nil
}

func (*ClassToken) OutputShape(in []int) ([]int, error) {
	tokens, features, err := sequenceOf(in)
	return []int{tokens + 1, features}, err
}

func (t *ClassToken) Parameters(in []int) []Parameter {
	n := in[len(in)-1]
	return []Parameter{{Name: "token", Shape: []int{n}, Init: t.Init, FanIn: n, FanOut: n}}
}

func (*ClassToken) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	tokens, features, err := sequenceOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("class_token: %w", err)
	}
	var c ops.Chain
	of := (tokens + 1) * features
	flat, row := c.Flatten(x), c.Reshape(s.Parameter("token"), 1, features)
	later := c.Do("widen", func() (*gorgonia.Node, error) { return ops.Widen(flat, features, of) })
	first := c.Do("widen", func() (*gorgonia.Node, error) { return ops.Widen(row, 0, of) })
	return c.Reshape(c.AddRow(later, c.Reshape(first, of)), x.Shape()[0], tokens+1, features), c.Err()
}

// TakeToken extracts one token of its input (tokens, features), or the mean of all tokens, as a vector (features). The token
// that [ClassToken] adds has index 0. With mask = "VALUE" the tokens of the mean have these weights: 1 for
// each token that counts and 0 for others (see [FirstTokens]), or any numbers >= 0. Without a weight above 0 the mean is 0.
type TakeToken struct {
	Token int    `toml:"token" want:">= 0" doc:"index of the token"`
	Mean  bool   `toml:"mean" doc:"take the mean of all tokens instead"`
	Mask  string `toml:"mask" optional:"true" doc:"name of the value with the weight of each token in the mean, 0 for none; empty: all"`

	mask []int // shape of the value that mask names
}

func init() {
	Registry.Register("take_token", "one token as a vector, or the mean of all", func() Layer { return &TakeToken{} })
}

// Check returns an error if both a token and the mean are given.
func (t *TakeToken) Check() error {
	if t.Mean && t.Token != 0 {
		return part.KeyErrorf("token", "got %d with mean = true: want one of them", t.Token)
	}
	if t.Mask != "" && !t.Mean {
		return part.KeyErrorf("mask", "is given without mean = true")
	}
	return nil
}

func (t *TakeToken) Reads() []Reading { return maskRead("mask", t.Mask, t.mask) }

func (t *TakeToken) Receive(shapes [][]int) {
	if t.Mask != "" {
		t.mask = shapes[0]
	}
}

func (t *TakeToken) OutputShape(in []int) ([]int, error) {
	tokens, features, err := sequenceOf(in)
	if err == nil && t.Token >= tokens {
		err = part.KeyErrorf("token", "got %d, but the input has %d tokens, counted from 0", t.Token, tokens)
	}
	if err == nil && t.Mask != "" {
		err = fitsTokens("mask", t.Mask, t.mask, tokens)
	}
	return []int{features}, err
}

func (*TakeToken) Parameters([]int) []Parameter { return nil }

func (t *TakeToken) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if t.Mask != "" {
		return t.mean(s, x)
	}
	if t.Mean {
		in := x.Shape()[1:]
		x, err := ops.Reshape(x, x.Shape()[0], in[0], 1, volume.Of(in[1:]))
		if err != nil {
			return nil, err
		}
		return (&GlobalPool{Value: "mean"}).Apply(s, x)
	}
	_, features, err := sequenceOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("take_token: %w", err)
	}
	var c ops.Chain
	return c.Columns(c.Flatten(x), t.Token*features, features), c.Err()
}

// mean returns the mean of the tokens, weighted by the mask.
func (t *TakeToken) mean(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	tokens, features, err := sequenceOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("take_token: %w", err)
	}
	var c ops.Chain
	batch := x.Shape()[0]
	weights := meanWeights(&c, s.Value(t.Mask), batch, tokens)
	geometry := ops.Attention{Tokens: 1, Features: features, Heads: 1, Others: tokens}
	mixed := c.Do("mix", func() (*gorgonia.Node, error) { return geometry.Mix(c.Reshape(weights, batch, 1, 1, tokens), x) })
	return c.Reshape(mixed, batch, features), c.Err()
}

func (t *TakeToken) OutputRange(in Interval) Interval {
	if t.Mask != "" { // of no tokens the mean is 0
		in.Low, in.High = min(in.Low, 0), max(in.High, 0)
	}
	return in
}
