package text

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/tokens"
)

const tokensName = "tokens"

// Sequences is a data set of texts as sequences of whole numbers: a sample has `length` tokens, for `embedding`. By default, the tokens of every
// file or cell, and <end>, are cut into windows, whose begins are `step` tokens apart; the last window ends with the text. With another unit, a
// sample is a line, a sentence or a paragraph with <end>, cut after `length` tokens. What is shorter is filled up with <pad>; the column `length` has the
// number of tokens before it, for `first_tokens`.
//
// Tokens are bytes, characters, words (punctuation included; Unicode Standard Annex 29) or those of a byte-pair encoding, which is fitted to the training
// texts and encodes any text exactly. `vocabulary` is the largest number of tokens, <pad>, <end> and, for words and characters, <unknown>
// included: the key vocabulary of `embedding`. The vocabulary is kept in the run. In texts for a model with the loss masked_token,
// <mask> is a word to predict: one token, behind all others.
//
// `tokenizer` reads a byte-level encoding of Hugging Face's tokenizers, such as that of GPT-2, whose tokens keep their numbers; <pad> and <end> follow.
// The pattern that divides texts is that of GPT-2, others are an error; added tokens, such as <|endoftext|>, are not searched for.
//
// With ngrams = n > 1 the tokens of a sample are followed by those of its sequences of 2, ..., n neighbouring tokens, <end> included: a bag of n-grams, for a
// classifier (fastText). They are n length - n (n-1)/2 at most, and have the numbers from that of all tokens on: the FNV-1a hash of their tokens (64 bits,
// of 4 bytes each, the lowest first) modulo `buckets`, so that unequal n-grams may share a number. With maxn > 0 they are followed by the n-grams of
// characters of all words, unknown ones included, as of the data set contexts; `vocabulary` of `embedding` is that of all tokens and `buckets`.
type Sequences struct {
	Texts
	Tokens     string `toml:"tokens" oneof:"words characters bytes bpe" doc:"what a token is"`
	Length     int    `toml:"length" want:"in [2,1000000]" doc:"number of tokens of a sample"`
	Step       int    `toml:"step" want:">= 0" doc:"tokens from the begin of one window to the next; 0 for length"`
	Vocabulary int    `toml:"vocabulary" want:">= 0" doc:"largest number of tokens: the most frequent words or characters, or the merged pairs; 0 for all words and characters, and 4096 of bpe"`
	Least      int    `toml:"least" want:"> 0" doc:"smallest number of occurrences of a word or character; others are <unknown>"`
	Tokenizer  string `toml:"tokenizer" doc:"file of a byte-level byte-pair encoding, in the place of a fitted one: tokenizer.json, or vocab.json with merges.txt beside it; or model.safetensors of a run, whose vocabulary it takes"`
	Ngrams     int    `toml:"ngrams" want:"in [1,100]" doc:"largest number of neighbouring tokens that are one more token of a sample; 1 for none"`
	Subwords

	blanks bool // <mask> in a text is a token
}

func init() {
	data.Registry.Register(tokensName, "your own texts as sequences of tokens: bytes, characters, words or byte pairs",
		func() data.Source {
			return &Sequences{Tokens: tokens.Pairs, Length: 128, Least: 1, Ngrams: 1, Subwords: Subwords{Minn: 3, Pieces: 500, Buckets: 100000}}
		})
}

func (s *Sequences) Check() error {
	if s.Tokenizer != "" && (s.Tokens != tokens.Pairs && !s.ofRun() || s.Vocabulary != 0 || s.Lower) {
		return part.KeyErrorf("tokenizer", "has its own vocabulary: want tokens = \"bpe\", vocabulary = 0 and lower = false, the defaults")
	}
	if s.Maxn > 0 && s.Tokens != tokens.Words {
		return part.KeyErrorf("maxn", "is for words: want tokens = %q", tokens.Words)
	}
	return errors.Join(s.Texts.Check(), s.Subwords.check(), checkSize(s.Tokens, s.Vocabulary))
}

func (s *Sequences) Shape(data.Dirs) ([]int, bool) { return []int{s.width()}, true }

// width returns the number of tokens of a sample, n-grams included.
func (s *Sequences) width() int {
	n := max(1, min(s.Ngrams, s.Length))
	width := n*s.Length - n*(n-1)/2
	if s.Maxn > 0 {
		width += s.Pieces
	}
	return width
}

// ngram returns the number of a sequence of tokens below s.Buckets.
func (s *Sequences) ngram(list []int32) int {
	h := uint64(0xcbf29ce484222325) // FNV-1a; hash/fnv allocates
	for _, token := range list {
		for shift := 0; shift < 32; shift += 8 {
			h = (h ^ uint64(token>>shift&0xff)) * 0x100000001b3
		}
	}
	return int(h % uint64(s.Buckets))
}

func (s *Sequences) Classes(data.Dirs) (int, bool) { return classesOf(s) }

func (s *Sequences) DescribeColumns(data.Dirs) []data.Column {
	return []data.Column{{Name: "length", Type: data.Whole}}
}

func (s *Sequences) Load(ctx context.Context, _ data.Dirs, _ data.Need) (*data.Set, error) {
	return s.load(ctx, tokensName, s, nil)
}

func (s *Sequences) ReadFile(ctx context.Context, path string, classes []string) (*data.Rows, error) {
	return s.rows(ctx, s, path, classes)
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

// WithBlanks returns the source for a model that predicts the words that a text leaves out: see [data.WithBlanks].
func (s *Sequences) WithBlanks() data.Source {
	other := *s
	other.blanks = true
	return &other
}

func (s *Sequences) Describe(ctx context.Context) (string, error) {
	set, err := s.Load(ctx, nil, data.Need{Train: true})
	if err != nil {
		return "", err
	}
	size := set.Tokens.Size()
	if s.Ngrams > 1 || s.Maxn > 0 {
		size += s.Buckets
	}
	return fmt.Sprintf("%s of %d tokens from a vocabulary of %d", numeral.Of(set.Train.Len(), "sample"), s.width(), size), nil
}

// tokenizerFiles returns the files from which the vocabulary is read; none if it is fitted.
func (s *Sequences) tokenizerFiles() []string {
	switch {
	case s.Tokenizer == "":
		return nil
	case filepath.Base(s.Tokenizer) == "vocab.json":
		return []string{s.Tokenizer, filepath.Join(filepath.Dir(s.Tokenizer), "merges.txt")}
	}
	return []string{s.Tokenizer}
}

// ofRun reports whether the vocabulary is that of a run.
func (s *Sequences) ofRun() bool { return strings.HasSuffix(s.Tokenizer, ".safetensors") }

// readRun reads the vocabulary in the parameters of a run.
func (s *Sequences) readRun(path string) (*tokens.Tokenizer, error) {
	file, err := data.ReadTensors(path)
	if err != nil {
		return nil, err
	}
	t := &tokens.Tokenizer{}
	if text := file.Metadata["tokens"]; text == "" {
		return nil, &data.Error{Path: path, Problem: "has no vocabulary", Hint: "name the model.safetensors of a run of texts"}
	} else if err := json.Unmarshal([]byte(text), t); err != nil {
		return nil, &data.Error{Path: path, Problem: "has a vocabulary that cannot be read", Err: err}
	}
	if t.Kind != s.Tokens {
		return nil, &data.Error{Path: path, Problem: fmt.Sprintf("has a vocabulary of %s, and the key tokens is %q", t.Kind, s.Tokens), Hint: fmt.Sprintf("write tokens = %q", t.Kind)}
	}
	return t, nil
}

func (s *Sequences) vocabulary(ctx context.Context, c *content) (*tokens.Tokenizer, error) {
	if s.Tokenizer != "" {
		read := tokens.Read
		if s.ofRun() {
			read = s.readRun
		}
		t, err := read(s.Tokenizer)
		return t, data.FileError(tokensName, s.Tokenizer, err)
	}
	size := s.Vocabulary
	if size == 0 && s.Tokens == tokens.Pairs {
		size = 4096
	}
	t := &tokens.Tokenizer{Kind: s.Tokens, Lower: s.Lower}
	return t.Fit(tokens.Limits{Size: size, Least: s.Least}, c.each(ctx))
}

func (s *Sequences) samples(ctx context.Context, c *content, t *tokens.Tokenizer) (*data.Images, error) {
	rows := s.record(c.path, s.width())
	var lengths []int32
	row := make([]float32, 0, s.width())
	spelled := s.spell(t)
	add := func(list []int32) error {
		list = list[:min(len(list), s.Length)]
		pieces := spelled.pieces(list...)
		row, list = row[:0], spelled.known(list)
		for _, token := range list {
			row = append(row, float32(token))
		}
		for n := 2; n <= s.Ngrams; n++ {
			for k := range max(0, len(list)-n+1) {
				row = append(row, float32(t.Size()+s.ngram(list[k:k+n])))
			}
		}
		for _, piece := range pieces {
			row = append(row, float32(piece))
		}
		lengths = append(lengths, int32(len(row)))
		for len(row) < s.width() {
			row = append(row, float32(t.Pad()))
		}
		return rows.Add(row...)
	}
	step := cmp.Or(s.Step, s.Length)
	encode := t.Encode
	switch {
	case s.Maxn > 0:
		encode = spelled.encode
	case s.blanks:
		encode = t.EncodeBlanks
	}
	c.parts = nil
	var wrong error
	var list []int32 // tokens of the text that are still to be taken
	cut := 0         // number of texts whose end is left out
	begin, from, before := 0, 0, 0
	err := c.each(ctx)(func(piece string, last bool) {
		list = append(list, encode(piece)...)
		if last {
			list = append(list, t.End())
		}
		n := begin + len(list)
		for ; (s.whole() || from == 0) && from+s.Length <= n; from += step {
			wrong = cmp.Or(wrong, add(list[from-begin:]))
		}
		if !last {
			if drop := min(from, n-s.Length) - begin; drop > 0 {
				list, begin = append(list[:0], list[drop:]...), begin+drop
			}
			return
		}
		if from == 0 || s.whole() && from-step+s.Length < n { // what is left
			wrong = cmp.Or(wrong, add(list[max(0, len(list)-s.Length):]))
		}
		if !s.whole() && n > s.Length {
			cut++
		}
		if c.named || c.classed {
			c.parts = append(c.parts, len(lengths)-before)
		}
		list, begin, from, before = list[:0], 0, 0, len(lengths)
	})
	if err = cmp.Or(err, wrong); err == nil {
		err = rows.Finish()
	}
	if err != nil {
		return nil, err
	}
	if cut > 0 && s.fitted != nil {
		c.notes = append(c.notes, fmt.Sprintf("%s: %d of %s have more than %d tokens, <end> included: the model reads the first ones", c.name(), cut, numeral.Of(c.n, "text"), s.Length))
	}
	labels, err := c.labels()
	if err != nil {
		return nil, err
	}
	var classes []int // of the samples
	for i, label := range labels {
		classes = append(classes, slices.Repeat([]int{label}, c.parts[i])...)
	}
	images, err := rows.Images([]int{s.width()}, classes)
	if err != nil {
		return nil, err
	}
	return images.WithColumns(data.WholeColumn("length", nil, lengths))
}
