package coder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"tessera/graph"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/losses"
	"tessera/metrics"
)

// Sampling says how the next token is drawn from the softmax of the logits.
type Sampling struct {
	Temperature float64 // divides the logits; 0 takes the most probable token
	TopK        int     // the number of the most probable tokens among which it draws; 0 for all
	TopP        float64 // only the most probable tokens whose probabilities add up to it; 0 or 1 for all
	Seed        uint64
}

// ErrNoLanguage is the error for a model that does not predict the next token.
var ErrNoLanguage = errors.New("it continues no texts: want a model of the data set tokens with a loss next_token")

// Language implements [metrics.LanguageModel].
func (c *Coder) Language() *metrics.Language {
	l := c.trained.Spec.Language()
	if t := c.Tokens(); l != nil && t != nil {
		l.Text = t.Exact()
		l.Bytes = func(token int) int {
			if token >= t.Texts() {
				return 0
			}
			return len(t.Name(int32(token)))
		}
	}
	return l
}

// Continue draws at most n tokens that continue a text, and passes each to do as soon as it is drawn. It ends at <end>, which is not passed. The model
// sees the last tokens only, at most as many as a sample has: when there are more, the oldest half is left out. Equal seeds give equal texts.
func (c *Coder) Continue(ctx context.Context, tokens []int32, n int, how Sampling, do func(token int32) error) error {
	if err := c.Ready(); err != nil {
		return err
	}
	t := c.Tokens()
	language := c.Language()
	if t == nil || language == nil || language.Shift != 1 {
		return fmt.Errorf("%s: %w", c.path, ErrNoLanguage)
	}
	if len(tokens) == 0 {
		return errors.New("generate: the prompt is empty: the model needs a token to begin with")
	}
	head, length := language.Value, c.Shape()[0]
	next := c.next(head, t.Pad())
	seen := slices.Clone(tokens[max(0, len(tokens)-length):])
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := next(seen)
		if err != nil {
			return err
		}
		row = row[:min(len(row), t.Size())] // a table may have more rows than there are tokens
		token := how.draw(row, random.Stream(how.Seed, "generate", uint64(i)).Float64(), func(token int32) bool {
			return int(token) < t.Texts() || token == t.End()
		})
		if token == t.End() {
			return nil
		}
		if seen = append(seen, token); len(seen) > length {
			seen = slices.Clone(seen[len(seen)-(length+1)/2:])
		}
		if err := do(token); err != nil {
			return err
		}
	}
	return nil
}

var errStop = errors.New("a stop text was drawn")

// ContinueText is [Coder.Continue] by pieces of the text: whole characters. The text ends before the first of the stop texts that is drawn, of which no
// piece has a part. It returns the number of drawn tokens, those of the stop text included.
func (c *Coder) ContinueText(ctx context.Context, tokens []int32, n int, how Sampling, stop []string, do func(piece string) error) (drawn int, err error) {
	t, list, text, begin, written := c.Tokens(), slices.Clone(tokens), "", 0, 0
	if t != nil {
		begin = len(t.Decode(tokens))
	}
	pass := func(end int) error {
		if end <= written {
			return nil
		}
		piece := text[written:end]
		written = end
		return do(piece)
	}
	err = c.Continue(ctx, tokens, n, how, func(token int32) error {
		list = append(list, token)
		text = t.Decode(list)[begin:]
		if end := firstOf(text, stop); end >= 0 {
			text = text[:end]
			return errStop
		}
		return pass(len(text) - unsettled(text, stop))
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return len(list) - len(tokens), cmp.Or(err, pass(len(text)))
}

// firstOf returns the index of the first of the texts in a text, -1 if there is none.
func firstOf(text string, of []string) int {
	first := -1
	for _, one := range of {
		if i := strings.Index(text, one); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// unsettled returns the number of bytes at the end of a text that may be the begin of a character or of one of the texts.
func unsettled(text string, of []string) (n int) {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if rest := text[len(text)-cut:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRuneInString(rest) {
				n = cut
			}
			break
		}
	}
	for _, one := range of {
		for cut := min(len(one)-1, len(text)); cut > n; cut-- {
			if strings.HasSuffix(text, one[:cut]) {
				n = cut
			}
		}
	}
	return n
}

// DrawNumbers draws sequences of whole numbers that begin with given ones, each number from those before it, among those that may be drawn, to which
// the first ones belong. A sequence has as many as a sample; sequence i depends only on its first number, the seed and i. The model has the loss next_token; its samples are no texts.
func (c *Coder) DrawNumbers(ctx context.Context, firsts []int32, seed uint64, may func(number int32) bool) (all []int32, err error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	language := c.Language()
	if language == nil || language.Shift != 1 {
		return nil, fmt.Errorf("%s: it draws no sequences: want a model with a loss next_token", c.path)
	}
	next := c.next(language.Value, 0)
	for i, first := range firsts {
		seen, r := []int32{first}, random.Stream(seed, "numbers", uint64(i))
		for len(seen) < c.Shape()[0] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			row, err := next(seen)
			if err != nil {
				return nil, err
			}
			if int(first) >= len(row) {
				return nil, fmt.Errorf("%s: it predicts numbers below %d, but a sequence begins with %d", c.path, len(row), first)
			}
			seen = append(seen, Sampling{Temperature: 1}.draw(row, r.Float64(), may))
		}
		all = append(all, seen...)
	}
	return all, nil
}

// next returns a function for the logits behind the last of at most as many tokens as a sample has. If all layers of the model compute a token from
// those up to it ([graph.Coder.Step]), only tokens that are not a continuation of the last call's are computed again; otherwise all are.
func (c *Coder) next(head string, pad int32) func(tokens []int32) ([]float32, error) {
	var last []int32
	var stepper *graph.Stepper
	_ = c.Do(func(m metrics.Coder) (err error) {
		if of, ok := m.(*graph.Coder); ok {
			stepper, err = of.Step(head)
		}
		return err
	})
	if stepper == nil {
		return func(tokens []int32) ([]float32, error) { return c.whole(head, tokens, pad) }
	}
	return func(tokens []int32) (logits []float32, err error) {
		from := len(last)
		if len(tokens) <= from || !slices.Equal(tokens[:from], last) {
			from = 0
		}
		err = c.Do(func(metrics.Coder) (err error) {
			stepper.Truncate(from)
			for _, token := range tokens[from:] {
				if logits, err = stepper.Next(float32(token)); err != nil {
					return err
				}
			}
			logits = slices.Clone(logits) // which another text may overwrite
			return nil
		})
		last = append(last[:from], tokens[from:]...)
		return logits, err
	}
}

// whole returns the logits behind the last token, computed from the whole sample.
func (c *Coder) whole(head string, tokens []int32, pad int32) ([]float32, error) {
	sample := lists.Of(c.Shape()[0], func(i int) float32 {
		if i < len(tokens) {
			return float32(tokens[i])
		}
		return float32(pad)
	})
	logits, err := c.ValueOf(head, map[string][]float32{losses.Images: sample})
	if err != nil {
		return nil, err
	}
	k := len(logits) / len(sample)
	return logits[(len(tokens)-1)*k:][:k], nil
}

// draw returns the token of a uniform number in [0,1), among those that may be drawn.
func (s Sampling) draw(logits []float32, u float64, may func(token int32) bool) int32 {
	order := make([]int32, 0, len(logits))
	for i := range logits {
		if may(int32(i)) {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(logits[b], logits[a]) })
	if s.Temperature == 0 {
		return order[0]
	}
	if s.TopK > 0 {
		order = order[:min(s.TopK, len(order))]
	}
	p, sum := make([]float64, len(order)), 0.0
	for i, token := range order {
		p[i] = math.Exp(float64(logits[token]-logits[order[0]]) / s.Temperature)
		sum += p[i]
	}
	if s.TopP > 0 && s.TopP < 1 {
		kept := 0.0
		for i, v := range p {
			if kept += v; kept >= s.TopP*sum {
				p, sum = p[:i+1], kept
				break
			}
		}
	}
	u *= sum
	for i, v := range p {
		if u -= v; u < 0 {
			return order[i]
		}
	}
	return order[len(p)-1] // by rounding
}
