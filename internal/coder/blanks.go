package coder

import (
	"context"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/internal/lists"
)

// Blank is the place of a token of a text that is left out: the first has the place 1.
type Blank struct{ Sample, Place int }

// FillsBlanks reports whether the model predicts tokens that are left out: it has the loss masked_token.
func (c *Coder) FillsBlanks() bool {
	l := c.Language()
	return l != nil && l.Hidden != "" && c.Tokens() != nil
}

// Reading returns a source of samples like those of the training, whose further files and texts are read by the vocabulary of the model, with blanks if
// it fills them.
func (c *Coder) Reading(s data.Source) data.Source {
	if s = data.WithVocabulary(s, c.Tokens()); c.FillsBlanks() {
		s = data.WithBlanks(s)
	}
	return s
}

// FillBlanks predicts the tokens of texts at the places of <mask>. Each blank is a sample of the prediction, whose classes are the tokens.
func (c *Coder) FillBlanks(ctx context.Context, samples *data.Images) (*Prediction, []Blank, error) {
	if !c.FillsBlanks() {
		return nil, nil, fmt.Errorf("%s: it predicts no words that are left out: want a model with the loss masked_token", c.path)
	}
	l, t, length := c.Language(), c.Tokens(), c.Shape()[0]
	var blanks []Blank
	var logits []float32
	sample := 0
	err := c.inBlocks(ctx, samples, c.Columns(l.Value), func(given map[string][]float32) error {
		tokens := slices.Clone(given[data.ImagesColumn])
		hidden := make([]float32, len(tokens))
		for i, token := range tokens {
			if int(token) == t.Size() {
				tokens[i], hidden[i] = 0, 1 // the model hides whatever token is there
			}
		}
		given[data.ImagesColumn], given[l.Hidden] = tokens, hidden
		z, err := c.ValueOf(l.Value, given)
		for i, h := range hidden {
			if k := len(z) / len(hidden); h == 1 && err == nil {
				blanks = append(blanks, Blank{sample + i/length, 1 + i%length})
				logits = append(logits, z[i*k:(i+1)*k]...)
			}
		}
		sample += len(tokens) / length
		return err
	})
	if err != nil || len(blanks) == 0 {
		return nil, nil, err
	}
	p, err := c.PredictionOf(l.Value, logits, len(blanks))
	if err != nil {
		return nil, nil, err
	}
	p.Classes = lists.Of(len(p.Classes), func(i int) string { return t.Name(int32(i)) })
	return p, blanks, nil
}
