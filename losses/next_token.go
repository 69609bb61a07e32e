package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// NextToken compares the logits of every token of a sequence with the token that is `shift` places later: teacher forcing of a model of language whose
// attention is causal. With n tokens x_t of a sample, each a whole number below K, and logits z_t of shape (n, K), it is the mean, over samples and
// tokens t < length - shift, of
//
//	-log softmax(z_t) at x_(t + shift)
//
// `length` names the column with the number of tokens of a sample, behind which is padding; without it all n tokens count. The exponential of the term is
// the perplexity. `against` is the sequence, by default the samples; a value that is not a whole number from 0 to K - 1 makes the term NaN.
type NextToken struct {
	Shift  int    `toml:"shift" want:">= 0" doc:"how many places later the token is that is predicted"`
	Length string `toml:"length" optional:"true" doc:"column with the number of tokens of a sample, without padding; empty: all tokens"`
}

func init() {
	Registry.Register("next_token", "mean over tokens of -log softmax(z) at the token behind them", func() Loss { return &NextToken{Shift: 1} })
}

// On implements [Loss]: a head named next.
func (*NextToken) On() string { return "next" }

// TokenTarget is implemented by losses that compare the logits of each token with the tokens themselves.
type TokenTarget interface{ ComparesTokens() }

func (*NextToken) ComparesTokens() {}

func (l *NextToken) Reads() Reads {
	r := Reads{Per: Means, On: true, Against: Images}
	if l.Length != "" {
		r.Values = []string{l.Length}
	}
	return r
}

// CheckAgainst implements [AgainstChecker]: the logits of each token.
func (l *NextToken) CheckAgainst(on, against int) error { return logitsOfTokens(on, against, l.Shift) }

func (l *NextToken) Build(v Values) (*gorgonia.Node, error) {
	return tokensNearLogits(&ops.Chain{}, v, l.Shift, l.Length, nil)
}

// logitsOfTokens returns an error unless `on` has logits for each token of `against`.
func logitsOfTokens(on, against, shift int) error {
	switch {
	case against <= shift:
		return fmt.Errorf("a sample has %d tokens: want more than shift = %d", against, shift)
	case on%against != 0 || on < 2*against:
		return fmt.Errorf("on has %d values for %d tokens, want a number of logits for each token: tokens x vocabulary", on, against)
	}
	return nil
}

// tokensNearLogits returns the mean of -log softmax of the logits of a token at the token `shift` places later, over the tokens before the length of a
// sample ("" for all) of which counted, (batch, tokens), is 1 (nil for all).
func tokensNearLogits(c *ops.Chain, v Values, shift int, length string, counted *gorgonia.Node) (*gorgonia.Node, error) {
	z, x := c.Do("on", v.On), c.Do("against", v.Against)
	if c.Err() != nil {
		return nil, c.Err()
	}
	batch, n := x.Shape()[0], x.Shape()[1]
	if err := logitsOfTokens(z.Shape()[1], n, shift); err != nil {
		return nil, err
	}
	k, m := z.Shape()[1]/n, n-shift
	logs := c.LogSoftmax(c.Reshape(c.Columns(z, 0, m*k), batch*m, k))
	want := c.OneHot(c.Reshape(c.Columns(x, shift, m), batch*m), k)
	own := c.Reshape(c.Sum(c.Mul(want, logs), 1), batch, m)
	if length != "" {
		lengths := c.Do("length", func() (*gorgonia.Node, error) { return v.Value(length) })
		first := c.Do("first", func() (*gorgonia.Node, error) { return ops.FirstPlaces(lengths, n) })
		if counted == nil {
			counted = first
		} else {
			counted = c.Mul(counted, first)
		}
	}
	if counted == nil {
		return c.Neg(c.Mean(own)), c.Err()
	}
	counted = c.Columns(counted, shift, m)
	return c.Neg(c.Div(c.Sum(c.Mul(own, counted)), c.Clip(c.Sum(counted), 1, 1e30))), c.Err()
}
