package metrics

import (
	"errors"
	"fmt"
	"math"

	"tessera/internal/volume"
)

// Language is a value of a model that predicts tokens of a sequence.
type Language struct {
	Value  string // the logits of each token, tokens x vocabulary
	Shift  int    // how many places later the predicted token is
	Length string // column with the number of tokens of a sample, without padding; "" if all count
	Hidden string // column that is 1 for the only tokens that are predicted; "" if all are
	Text   bool   // the tokens give the text back, byte by byte

	// Bytes returns the number of bytes of a token, 0 for one that no text contains; nil if the vocabulary is unknown.
	Bytes func(token int) int
}

// LanguageModel is a [Coder] with a value that predicts tokens.
type LanguageModel interface {
	Coder
	// Language returns this value, nil if the model has none.
	Language() *Language
}

// languageOf returns the value of a coder that predicts tokens, nil if it has none.
func languageOf(c Coder) *Language {
	l, ok := As[LanguageModel](c)
	if !ok {
		return nil
	}
	return l.Language()
}

// The perplexities of different vocabularies cannot be compared. Source of bits per byte: Gao et al., The Pile, 2020.
func init() {
	register("language", "how well the next tokens of a text are predicted", Description{
		Measures: []Measure{
			{Name: "perplexity", Better: Lower, Doc: "exponential of the mean negative log-likelihood of the predicted tokens, exp(mean of -log p): a uniform distribution over K tokens has the perplexity K. For models with the loss `next_token`, or `masked_token` (of the hidden tokens); padding does not count"},
			{Name: "bits_per_byte", Unit: "bits", Better: Lower, Doc: "sum of -log2 p of the predicted tokens, divided by their number of bytes (Gao et al. 2020): comparable between vocabularies. For bytes and byte-pair encoding, which reproduce the text exactly; not measured during training"},
		},
		Reads: ReadsImages | ReadsTokens, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		l := languageOf(s.Coder)
		if l == nil {
			return nil, errors.New("metrics: language: the model predicts no tokens")
		}
		length := volume.Of(s.Shape)
		nats, tokens, bytes := 0.0, 0.0, 0.0
		return meter{
			add: func(b *Batch) error {
				z, err := b.Value(l.Value)
				if err != nil {
					return err
				}
				n := len(b.Images) / length
				lengths, classes := b.Columns[l.Length], len(z)/max(1, len(b.Images))
				if classes < 2 || len(z) != classes*len(b.Images) || l.Length != "" && len(lengths) != n {
					return fmt.Errorf("metrics: language: got %d logits and %d lengths of %d samples of %d tokens", len(z), len(lengths), n, length)
				}
				hidden := b.Columns[l.Hidden]
				if l.Hidden != "" && len(hidden) != len(b.Images) {
					return fmt.Errorf("metrics: language: got %d numbers of the column %q, want %d", len(hidden), l.Hidden, len(b.Images))
				}
				for i := range n {
					end := length
					if l.Length != "" {
						end = min(end, int(lengths[i]))
					}
					for t := i * length; t+l.Shift < i*length+end; t++ {
						if hidden != nil && hidden[t+l.Shift] != 1 {
							continue
						}
						token := int(b.Images[t+l.Shift])
						if token < 0 || token >= classes {
							return fmt.Errorf("metrics: language: got the token %d, want one below %d", token, classes)
						}
						nats -= logProbability(z[t*classes:(t+1)*classes], token)
						if tokens++; l.Bytes != nil {
							bytes += float64(l.Bytes(token))
						}
					}
				}
				return nil
			},
			values: func() []Value {
				if tokens == 0 {
					return []Value{NotApplicable("no sample has a token to predict")}
				}
				perplexity, bits := Number(math.Exp(nats/tokens)), Number(nats/math.Ln2/bytes)
				switch {
				case l.Bytes == nil:
					bits = NotApplicable("the bytes of the tokens are not known during training")
				case !l.Text:
					bits = NotApplicable("the tokens do not give the text back, byte by byte")
				case bytes == 0:
					bits = NotApplicable("the predicted tokens have no bytes")
				}
				return []Value{perplexity, bits}
			},
		}, nil
	})
}
