package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// FirstTokens turns the lengths of sequences into masks. A column of one whole number n becomes a vector of `tokens` values: 1
// for the first n tokens, 0 for the others, which are padding. A vector of lengths becomes one such row for each length.
// [Attention], [Transformer] and [TakeToken] read such a mask by the key mask, as do loss terms. The layer has no parameters,
// and its input has no gradient.
type FirstTokens struct {
	Tokens int `toml:"tokens" want:"> 0" required:"true" doc:"number of tokens of the longest sequence"`
}

func init() {
	Registry.Register("first_tokens", "1 for the first n of the tokens, n the input: the mask of a sequence of that length", func() Layer { return &FirstTokens{} })
}

// Indices implements [Indexing]: lengths from 0 to the number of tokens.
func (f *FirstTokens) Indices() int { return f.Tokens + 1 }

func (f *FirstTokens) OutputShape(in []int) ([]int, error) {
	switch {
	case len(in) != 1:
		return nil, fmt.Errorf("got an input of shape %v, want the length of the sequence, or a vector of lengths", in)
	case in[0] == 1:
		return []int{f.Tokens}, nil
	}
	return []int{in[0], f.Tokens}, nil
}

func (*FirstTokens) Parameters([]int) []Parameter { return nil }

func (f *FirstTokens) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	out, err := f.OutputShape(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("first_tokens: %w", err)
	}
	var c ops.Chain
	n := x.Shape().TotalSize()
	mask := c.Do("first places", func() (*gorgonia.Node, error) { return ops.FirstPlaces(c.Reshape(x, n, 1), f.Tokens) })
	return c.Reshape(mask, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

func (*FirstTokens) OutputRange(Interval) Interval { return Interval{0, 1} }

// fitsTokens returns an error for a mask that does not contain one number for each token.
func fitsTokens(key, name string, shape []int, tokens int) error {
	if volume.Of(shape) != tokens {
		return part.KeyErrorf(key, "%q has the shape %v, want one number for each of %d tokens", name, shape, tokens)
	}
	return nil
}

// tokensRead returns the reading of the tokens that the key `keys` names, nil if the key is empty.
func tokensRead(name string, shape []int) []Reading {
	if name == "" {
		return nil
	}
	return []Reading{{Key: "keys", Name: name, Shape: shape}}
}

// maskRead returns the reading of the mask that a key names, nil if the key is empty.
func maskRead(key, name string, shape []int) []Reading {
	if name == "" {
		return nil
	}
	return []Reading{{Key: key, Name: name, Shape: shape, Fixed: true}}
}
