package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MaskedToken compares the logits of the tokens that a column hides with these tokens: the objective of a bidirectional model of language. With n tokens
// x_t of a sample, each a whole number below K, logits z_t of shape (n, K) and the column `hidden` of n numbers, it is the mean, over the tokens t <
// length where the column is 1, of
//
//	-log softmax(z_t) at x_t
//
// `length` names the column with the number of tokens of a sample, behind which is padding. The layer replace hides the same tokens from the model.
// `against` is the sequence, by default the samples. Devlin et al., BERT, 2019.
type MaskedToken struct {
	Hidden string `toml:"hidden" required:"true" doc:"column that is 1 for the tokens to predict, else 0"`
	Length string `toml:"length" optional:"true" doc:"column with the number of tokens of a sample, without padding; empty: all tokens"`
}

func init() {
	Registry.Register("masked_token", "mean over hidden tokens of -log softmax(z) at the token", func() Loss { return &MaskedToken{} })
}

// On implements [Loss]: a head named token.
func (*MaskedToken) On() string { return "token" }

func (*MaskedToken) ComparesTokens() {}

func (l *MaskedToken) Reads() Reads {
	r := Reads{Per: Means, On: true, Against: Images, Values: []string{l.Hidden}, Held: []string{l.Hidden}}
	if l.Length != "" {
		r.Values = append(r.Values, l.Length)
	}
	return r
}

// CheckAgainst implements [AgainstChecker]: the logits of each token.
func (*MaskedToken) CheckAgainst(on, against int) error { return logitsOfTokens(on, against, 0) }

func (l *MaskedToken) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	hidden := c.Do("hidden", func() (*gorgonia.Node, error) { return v.Value(l.Hidden) })
	return tokensNearLogits(&c, v, 0, l.Length, c.From(1, c.Lt(hidden, 0.5)))
}
