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
func (l *NextToken) CheckAgainst(on, against int) error {
	switch {
	case against <= l.Shift:
		return fmt.Errorf("a sample has %d tokens: want more than shift = %d", against, l.Shift)
	case on%against != 0 || on < 2*against:
		return fmt.Errorf("on has %d values for %d tokens, want a number of logits for each token: tokens x vocabulary", on, against)
	}
	return nil
}

func (l *NextToken) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	z, x := c.Do("on", v.On), c.Do("against", v.Against)
	if c.Err() != nil {
		return nil, c.Err()
	}
	batch, n := x.Shape()[0], x.Shape()[1]
	if err := l.CheckAgainst(z.Shape()[1], n); err != nil {
		return nil, err
	}
	k, m := z.Shape()[1]/n, n-l.Shift
	some := func(x *gorgonia.Node, from, count int) *gorgonia.Node {
		return c.Do("tokens", func() (*gorgonia.Node, error) { return ops.Columns(x, from, count) })
	}
	logs := c.LogSoftmax(c.Reshape(some(z, 0, m*k), batch*m, k))
	want := c.Do("one hot", func() (*gorgonia.Node, error) { return ops.OneHot(c.Reshape(some(x, l.Shift, m), batch*m), k) })
	own := c.Reshape(c.Sum(c.Mul(want, logs), 1), batch, m)
	if l.Length == "" {
		return c.Neg(c.Mean(own)), c.Err()
	}
	lengths := c.Do("length", func() (*gorgonia.Node, error) { return v.Value(l.Length) })
	counted := some(c.Do("first", func() (*gorgonia.Node, error) { return ops.FirstPlaces(lengths, n) }), l.Shift, m)
	return c.Neg(c.Div(c.Sum(c.Mul(own, counted)), c.Clip(c.Sum(counted), 1, 1e30))), c.Err()
}
