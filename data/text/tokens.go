package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/tokens"
)

const tokensName = "tokens"

// Sequences is a data set of texts as sequences of whole numbers: a sample has `length` tokens, for `embedding`. Without the key unit, the tokens of
// every file or cell, and <end>, are cut into windows, whose begins are `step` tokens apart; the last window ends with the text. With a unit, a sample is
// a line, a sentence or another unit with <end>, cut after `length` tokens. What is shorter is filled up with <pad>; the column `length` has the
// number of tokens before it, for `first_tokens`.
//
// Tokens are bytes, characters, words (punctuation included; Unicode Standard Annex 29) or those of a byte-pair encoding, which is fitted to the training
// texts and encodes any text exactly. `vocabulary` is the largest number of tokens, <pad>, <end> and, for words and characters, <unknown>
// included: the key vocabulary of `embedding`. The vocabulary is kept in the run. In texts for a trained model, <mask> is a word to predict: one
// token, behind all others.
type Sequences struct {
	Texts
	Tokens     string `toml:"tokens" oneof:"words characters bytes bpe" doc:"what a token is"`
	Length     int    `toml:"length" want:"in [2,1000000]" doc:"number of tokens of a sample"`
	Step       int    `toml:"step" want:">= 0" doc:"tokens from the begin of one window to the next; 0 for length"`
	Vocabulary int    `toml:"vocabulary" want:">= 0" doc:"largest number of tokens: the most frequent words or characters, or the merged pairs; 0 for all words and characters, and 4096 of bpe"`
	Least      int    `toml:"least" want:"> 0" doc:"smallest number of occurrences of a word or character; others are <unknown>"`
}

func init() {
	data.Registry.Register(tokensName, "your own texts as sequences of tokens: bytes, characters, words or byte pairs",
		func() data.Source { return &Sequences{Tokens: tokens.Pairs, Length: 128, Least: 1} })
}

func (s *Sequences) Check() error {
	return errors.Join(s.Texts.Check(), checkSize(s.Tokens, s.Vocabulary))
}

func (s *Sequences) Shape(data.Dirs) ([]int, bool) { return []int{s.Length}, true }

func (s *Sequences) Classes(data.Dirs) (int, bool) { return classesOf(s) }

func (s *Sequences) DescribeColumns(data.Dirs) []data.Column {
	return []data.Column{{Name: "length", Type: data.Whole}}
}

func (s *Sequences) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return s.load(ctx, tokensName, s, nil)
}

func (s *Sequences) ReadFile(ctx context.Context, path string) (*data.Rows, error) {
	return s.rows(ctx, s, path)
}

// ReadTexts implements [data.TextReader]: the first tokens of every text.
func (s *Sequences) ReadTexts(ctx context.Context, texts []string) (*data.Images, error) {
	first := *s
	first.Unit = line // one sample for each
	return s.memory(ctx, &first, texts)
}

func (s *Sequences) Fitted(t *tokens.Tokenizer) data.Source {
	other := *s
	other.fitted = t
	return &other
}

func (s *Sequences) Describe(ctx context.Context) (string, error) {
	set, err := s.Load(ctx, nil, data.Need{Train: true})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s of %d tokens from a vocabulary of %d", numeral.Of(set.Train.Len(), "sample"), s.Length, set.Tokens.Size()), nil
}

func (s *Sequences) vocabulary(ctx context.Context, c *content) (*tokens.Tokenizer, error) {
	size := s.Vocabulary
	if size == 0 && s.Tokens == tokens.Pairs {
		size = 4096
	}
	t := &tokens.Tokenizer{Kind: s.Tokens, Lower: s.Lower}
	return t.Fit(tokens.Limits{Size: size, Least: s.Least}, c.each(ctx))
}

func (s *Sequences) samples(ctx context.Context, c *content, t *tokens.Tokenizer, labels []int) (*data.Images, error) {
	var values []float32
	var lengths []int32
	var classes []int
	add := func(list []int32, i int) {
		n := min(len(list), s.Length)
		for k := range s.Length {
			token := t.Pad()
			if k < n {
				token = list[k]
			}
			values = append(values, float32(token))
		}
		if lengths = append(lengths, int32(n)); labels != nil {
			classes = append(classes, labels[i])
		}
	}
	step := cmp.Or(s.Step, s.Length)
	encode := t.Encode
	if s.fitted != nil { // texts for a model
		encode = t.EncodeBlanks
	}
	i := 0
	c.parts = nil
	err := c.each(ctx)(func(text string) {
		before := len(lengths)
		list := append(encode(text), t.End())
		add(list, i)
		for from := step; s.Unit == "" && from-step+s.Length < len(list); from += step {
			add(list[min(from, len(list)-s.Length):], i)
		}
		c.parts = append(c.parts, len(lengths)-before)
		i++
	})
	if err != nil {
		return nil, err
	}
	images, err := data.NewFloats([]int{s.Length}, values, classes)
	if err != nil {
		return nil, err
	}
	return images.WithColumns(data.WholeColumn("length", nil, lengths))
}
