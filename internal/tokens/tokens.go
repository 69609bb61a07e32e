// Package tokens divides texts into tokens, and numbers them by a vocabulary that is fitted to texts.
package tokens

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// The kinds of tokens.
const (
	Bytes      = "bytes"      // of UTF-8: 256 tokens
	Characters = "characters" // code points of Unicode
	Words      = "words"      // by Unicode Standard Annex 29
	Pairs      = "bpe"        // byte-pair encoding: bytes, and merged pairs of tokens
)

// Kinds lists the kinds of tokens.
var Kinds = []string{Words, Characters, Bytes, Pairs}

// The tokens that no text contains.
const (
	padText     = "<pad>"
	endText     = "<end>"
	unknownText = "<unknown>"
)

// Tokenizer is a fitted vocabulary. Tokens are numbered: those of texts first, then <pad>, <end> and, for words and characters, <unknown>.
// It is safe for concurrent use.
type Tokenizer struct {
	Kind   string     `json:"kind"`
	Lower  bool       `json:"lower,omitempty"`  // texts are converted to lower case
	Plain  bool       `json:"plain,omitempty"`  // words have a letter or a digit: punctuation is left out
	Names  []string   `json:"names,omitempty"`  // words or characters, the most frequent first
	Merges [][2]int32 `json:"merges,omitempty"` // of byte-pair encoding: token 256+i joins two earlier tokens

	// Vocabulary has the bytes of all tokens of byte-pair encoding if they were read from a file; the numbers of bytes and merged pairs follow from it.
	Vocabulary [][]byte `json:"vocabulary,omitempty"`

	once    sync.Once
	index   map[string]int32
	ranks   map[[2]int32]int32 // place of a pair in Merges
	results []int32            // tokens that Merges make
	single  [256]int32         // tokens of bytes
	bytes   [][]byte           // of the tokens of byte-pair encoding
	wrong   error              // of a vocabulary that was read
}

// prepare makes what follows from the exported fields.
func (t *Tokenizer) prepare() {
	t.once.Do(func() {
		t.index = make(map[string]int32, len(t.Names))
		for i, name := range t.Names {
			t.index[name] = int32(i)
		}
		if t.Kind != Bytes && t.Kind != Pairs {
			return
		}
		t.ranks = make(map[[2]int32]int32, len(t.Merges))
		for i, m := range slices.Backward(t.Merges) { // of equal pairs the first one counts
			t.ranks[m] = int32(i)
		}
		if t.Vocabulary != nil {
			t.wrong = t.derive()
			return
		}
		for b := range 256 {
			t.single[b], t.bytes = int32(b), append(t.bytes, []byte{byte(b)})
		}
		for i, m := range t.Merges {
			t.results = append(t.results, int32(256+i))
			t.bytes = append(t.bytes, slices.Concat(t.bytes[m[0]], t.bytes[m[1]]))
		}
	})
}

// Check returns an error for a tokenizer, read from a file, that no [Fit] returns.
func (t *Tokenizer) Check() error {
	if !slices.Contains(Kinds, t.Kind) {
		return fmt.Errorf("tokens: got %.40q, want one of %q", t.Kind, Kinds)
	}
	if t.Vocabulary != nil {
		t.prepare()
		return t.wrong
	}
	for i, m := range t.Merges {
		if m[0] < 0 || m[1] < 0 || int(max(m[0], m[1])) >= 256+i {
			return fmt.Errorf("tokens: merge %d: got %v, want two earlier tokens", i, m)
		}
	}
	return nil
}

// Texts returns the number of tokens that occur in texts: without <pad>, <end> and <unknown>.
func (t *Tokenizer) Texts() int {
	if t.Kind == Words || t.Kind == Characters {
		return len(t.Names)
	}
	if t.Vocabulary != nil {
		return len(t.Vocabulary)
	}
	return 256 + len(t.Merges)
}

// Exact reports whether tokens give the text back, byte by byte.
func (t *Tokenizer) Exact() bool { return t.Kind == Bytes || t.Kind == Pairs }

// Size returns the number of all tokens.
func (t *Tokenizer) Size() int { return t.Texts() + specials(t.Kind) }

// specials returns the number of tokens that no text contains.
func specials(kind string) int {
	if kind == Words || kind == Characters {
		return 3
	}
	return 2
}

// Pad returns the token of places after the end of a text.
func (t *Tokenizer) Pad() int32 { return int32(t.Texts()) }

// End returns the token at the end of a text.
func (t *Tokenizer) End() int32 { return int32(t.Texts()) + 1 }

// unknown returns the token of words and characters that are not in the vocabulary.
func (t *Tokenizer) unknown() int32 { return int32(t.Texts()) + 2 }

// Name returns a token as text; "" for a number that is none.
func (t *Tokenizer) Name(token int32) string {
	t.prepare()
	switch n := t.Texts(); {
	case token < 0 || int(token) >= t.Size():
		return ""
	case int(token) >= n:
		return []string{padText, endText, unknownText}[int(token)-n]
	case t.Names != nil:
		return t.Names[token]
	}
	return string(t.bytes[token])
}

// Word returns a token as a word of a file of vectors: a space becomes "▁", as in SentencePiece; what is not printed, such as a newline or a part of a character, is
// escaped as in Go (\n, \xe4).
func (t *Tokenizer) Word(token int32) string {
	word := t.Name(token)
	if !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		word = strconv.Quote(word)
		word = word[1 : len(word)-1]
	}
	return strings.ReplaceAll(word, " ", "▁")
}

// Index returns the number of a word or character; ok is false if the vocabulary does not contain it.
func (t *Tokenizer) Index(name string) (token int32, ok bool) {
	t.prepare()
	token, ok = t.index[name]
	return token, ok
}

// Known calls do for the tokens of a text that the vocabulary contains.
func (t *Tokenizer) Known(text string, do func(token int32)) {
	for _, token := range t.Encode(text) {
		if int(token) < t.Texts() {
			do(token)
		}
	}
}

// Encode returns the tokens of a text.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.EncodeOr(text, func(string) int32 { return t.unknown() })
}

// EncodeOr is [Tokenizer.Encode] with a function for words and characters that the vocabulary does not contain.
func (t *Tokenizer) EncodeOr(text string, unknown func(piece string) int32) (list []int32) {
	t.prepare()
	for piece := range t.pieces(text) {
		switch t.Kind {
		case Bytes, Pairs:
			list = append(list, t.merged(piece)...)
			continue
		}
		token, ok := t.index[piece]
		if !ok {
			token = unknown(piece)
		}
		list = append(list, token)
	}
	return list
}

// Blank stands for a word that is left out, in a text of which a model predicts it.
const Blank = "<mask>"

// EncodeBlanks is [Tokenizer.Encode] of a text with blanks, whose token is Size(), behind all others.
func (t *Tokenizer) EncodeBlanks(text string) (list []int32) {
	for i, part := range strings.Split(text, Blank) {
		if i > 0 {
			list = append(list, int32(t.Size()))
		}
		list = append(list, t.Encode(part)...)
	}
	return list
}

// Decode returns the text of tokens, up to the first <end>, without <pad> and what is no token. Words are joined by spaces, but for punctuation. The text of bytes and
// of byte-pair encoding is exactly what was encoded.
func (t *Tokenizer) Decode(list []int32) string {
	var b strings.Builder
	for _, token := range list {
		switch {
		case token == t.End():
			return b.String()
		case token == t.Pad(), int(token) >= t.Size(): // the latter is <mask> or an n-gram
			continue
		}
		name := t.Name(token)
		if first, _ := utf8.DecodeRuneInString(name); t.Kind == Words && b.Len() > 0 && !strings.ContainsRune(",.;:!?)]}’”", first) {
			b.WriteByte(' ')
		}
		b.WriteString(name)
	}
	return b.String()
}

// pieces returns the words or characters of a text, or of the others the pieces that are encoded separately.
func (t *Tokenizer) pieces(text string) iter.Seq[string] {
	if t.Lower {
		text = strings.ToLower(text)
	}
	switch t.Kind {
	case Bytes:
		return func(yield func(string) bool) { yield(text) }
	case Pairs:
		if t.Vocabulary != nil {
			return gptRuns(text)
		}
		return runs(text)
	case Characters:
		return func(yield func(string) bool) {
			for from := 0; from < len(text); {
				_, size := utf8.DecodeRuneInString(text[from:])
				if !yield(text[from : from+size]) {
					return
				}
				from += size
			}
		}
	}
	return func(yield func(string) bool) {
		for all := words.FromString(norm.NFC.String(text)); all.Next(); {
			word := all.Value()
			if strings.TrimSpace(word) == "" || t.Plain && !isWord(word) {
				continue
			}
			if !yield(word) {
				return
			}
		}
	}
}

// isWord reports whether a piece of a text has a letter or a digit.
func isWord(piece string) bool {
	return strings.ContainsFunc(piece, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// Sentences returns the sentences of a text by Unicode Standard Annex 29, without spaces around them.
func Sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for all := sentences.FromString(text); all.Next(); {
			if s := strings.TrimSpace(all.Value()); s != "" && !yield(s) {
				return
			}
		}
	}
}

// Limits says which tokens a vocabulary contains.
type Limits struct {
	Size  int     // largest number of tokens, <pad>, <end> and <unknown> included; 0 for any
	Least int     // smallest number of occurrences of a word or character
	Texts int     // smallest number of texts that contain it, at most all
	Share float64 // largest share of the texts that contain it; 0 for any
}

// ErrEmpty is the error for texts without a token that the limits allow.
var ErrEmpty = errors.New("no word is in the vocabulary")

// Fit returns the vocabulary of texts for the kind and the settings of t. each calls a function for the pieces of every text, the last of which ends it; it
// may be called once only.
// Words and characters are sorted by their number of occurrences, those of equal number by their text.
func (t *Tokenizer) Fit(limits Limits, each func(do func(piece string, last bool)) error) (*Tokenizer, error) {
	fitted := &Tokenizer{Kind: t.Kind, Lower: t.Lower, Plain: t.Plain}
	if t.Kind == Bytes {
		return fitted, nil
	}
	type counted struct{ occurrences, texts, last int }
	counts, n := map[string]*counted{}, 1
	err := each(func(text string, last bool) {
		for piece := range fitted.pieces(text) {
			c := counts[piece]
			if c == nil {
				c = &counted{}
				counts[strings.Clone(piece)] = c
			}
			c.occurrences++
			if c.last != n {
				c.texts, c.last = c.texts+1, n
			}
		}
		if last {
			n++
		}
	})
	n--
	if err != nil {
		return nil, err
	}
	if t.Kind == Pairs {
		most := 256
		if limits.Size > 0 {
			most = limits.Size - specials(Pairs) - 256
		}
		parts := make(map[string]int, len(counts))
		for piece, c := range counts {
			parts[piece] = c.occurrences
		}
		fitted.Merges = mergesOf(parts, most)
		return fitted, nil
	}
	for _, piece := range slices.Sorted(maps.Keys(counts)) {
		c := counts[piece]
		if c.occurrences >= limits.Least && c.texts >= min(limits.Texts, n) && (limits.Share == 0 || float64(c.texts) <= limits.Share*float64(n)) {
			fitted.Names = append(fitted.Names, piece)
		}
	}
	slices.SortStableFunc(fitted.Names, func(a, b string) int { return cmp.Compare(counts[b].occurrences, counts[a].occurrences) })
	if limits.Size > 0 {
		fitted.Names = slices.Clip(fitted.Names[:min(len(fitted.Names), max(0, limits.Size-specials(t.Kind)))])
	}
	if len(fitted.Names) == 0 {
		return nil, ErrEmpty
	}
	return fitted, nil
}
