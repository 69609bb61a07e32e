package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostRead is the largest number of a token that is read.
const mostRead = 1 << 22

// declared is what is read of a tokenizer.json of Hugging Face's tokenizers.
type declared struct {
	Model struct {
		Type         string            `json:"type"`
		Vocab        map[string]int    `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"` // "a b" or ["a", "b"]
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Dropout      float64           `json:"dropout"`
	} `json:"model"`
	Normalizer   any `json:"normalizer"`
	PreTokenizer struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		UseRegex       *bool  `json:"use_regex"`
	} `json:"pre_tokenizer"`
	AddedTokens []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
}

// Read reads a byte-level byte-pair encoding, such as that of GPT-2: a tokenizer.json, or a vocab.json with a merges.txt beside it. Tokens have the
// numbers of the file. Added tokens, such as <|endoftext|>, have numbers too, but texts are not searched for them.
func Read(path string) (*Tokenizer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d declared
	var pairs [][2]string
	if filepath.Base(path) == "vocab.json" {
		err = json.Unmarshal(b, &d.Model.Vocab)
		if err == nil {
			pairs, err = readMerges(filepath.Join(filepath.Dir(path), "merges.txt"))
		}
	} else if err = json.Unmarshal(b, &d); err == nil {
		if err = d.check(); err == nil {
			pairs, err = d.pairs()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	t := &Tokenizer{Kind: Pairs}
	put := func(id int, text []byte) error {
		if id < 0 || id > mostRead {
			return fmt.Errorf("%s: token %.40q: got the number %d, want 0 to %d", filepath.Base(path), text, id, mostRead)
		}
		for len(t.Vocabulary) <= id {
			t.Vocabulary = append(t.Vocabulary, nil)
		}
		t.Vocabulary[id] = text
		return nil
	}
	for text, id := range d.Model.Vocab {
		b, ok := bytesOf(text)
		if !ok { // an added token
			b = []byte(text)
		}
		if err := put(id, b); err != nil {
			return nil, err
		}
	}
	for _, p := range pairs {
		a, ok1 := d.Model.Vocab[p[0]]
		b, ok2 := d.Model.Vocab[p[1]]
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%s: the merge %.80q has a token that the vocabulary lacks", filepath.Base(path), p)
		}
		t.Merges = append(t.Merges, [2]int32{int32(a), int32(b)})
	}
	for _, added := range d.AddedTokens {
		if err := put(added.ID, []byte(added.Content)); err != nil {
			return nil, err
		}
	}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return t, nil
}

// check returns an error for what is no byte-level encoding without further steps.
func (d *declared) check() error {
	switch {
	case d.Model.Type != "" && d.Model.Type != "BPE":
		return fmt.Errorf("got a model of type %.40q, want BPE", d.Model.Type)
	case d.PreTokenizer.Type != "ByteLevel" || d.PreTokenizer.UseRegex != nil && !*d.PreTokenizer.UseRegex:
		return fmt.Errorf("got the pre_tokenizer %.40q, want ByteLevel with the pattern of GPT-2: other patterns are not read", d.PreTokenizer.Type)
	case d.PreTokenizer.AddPrefixSpace, d.Normalizer != nil, d.Model.ByteFallback, d.Model.IgnoreMerges, d.Model.Dropout != 0:
		return errors.New("add_prefix_space, a normalizer, byte_fallback, ignore_merges and dropout are not read")
	}
	return nil
}

func (d *declared) pairs() (list [][2]string, err error) {
	for i, raw := range d.Model.Merges {
		var p [2]string
		var text string
		if json.Unmarshal(raw, &text) == nil {
			var ok bool
			if p[0], p[1], ok = strings.Cut(text, " "); !ok {
				return nil, fmt.Errorf("merge %d: got %.40q, want two tokens", i, text)
			}
		} else if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("merge %d: %w", i, err)
		}
		list = append(list, p)
	}
	return list, nil
}

func readMerges(path string) (list [][2]string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		a, b, ok := strings.Cut(strings.TrimSuffix(line, "\r"), " ")
		switch {
		case i == 0 && strings.HasPrefix(line, "#version"), line == "":
		case !ok:
			return nil, fmt.Errorf("merges.txt: line %d: got %.40q, want two tokens", i+1, line)
		default:
			list = append(list, [2]string{a, b})
		}
	}
	return list, nil
}

// bytesOf returns the bytes of a token in the alphabet of GPT-2: bytes that are printed stand for themselves, others for the code points from 256.
func bytesOf(text string) ([]byte, bool) {
	var b []byte
	for _, r := range text {
		at, ok := alphabet[r]
		if !ok {
			return nil, false
		}
		b = append(b, at)
	}
	return b, true
}

var alphabet = func() map[rune]byte {
	of, next := map[rune]byte{}, rune(256)
	for b := range 256 {
		r := rune(b)
		if printed := r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®'; !printed {
			r, next = next, next+1
		}
		of[r] = byte(b)
	}
	return of
}()

// gptRuns divides a text as GPT-2 does, by the pattern 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+.
func gptRuns(text string) iter.Seq[string] {
	class := func(r rune) int {
		if unicode.IsMark(r) {
			return other
		}
		return classOf(r)
	}
	return func(yield func(string) bool) {
		for from, to := 0, 0; from < len(text); from = to {
			to = from + contraction(text[from:])
			if to == from {
				r, size := utf8.DecodeRuneInString(text[from:])
				next, after := utf8.DecodeRuneInString(text[from+size:])
				if to += size; r == ' ' && after > 0 && class(next) != space {
					r, to = next, to+after
				}
				last := size
				for to < len(text) {
					more, n := utf8.DecodeRuneInString(text[to:])
					if class(more) != class(r) {
						break
					}
					to, last = to+n, n
				}
				if class(r) == space && to < len(text) && to-last > from { // the last space is apart
					to -= last
				}
			}
			if !yield(text[from:to]) {
				return
			}
		}
	}
}

// contraction returns the length of a contraction at the beginning of a text.
func contraction(text string) int {
	for _, c := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, c) {
			return len(c)
		}
	}
	return 0
}

// derive makes the numbers of bytes and merged pairs from a vocabulary that was read.
func (t *Tokenizer) derive() error {
	of := make(map[string]int32, len(t.Vocabulary))
	for i, b := range t.Vocabulary {
		if _, twice := of[string(b)]; !twice && b != nil {
			of[string(b)] = int32(i)
		}
	}
	for b := range 256 {
		token, ok := of[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("the byte %#x has no token: it is no byte-level encoding", b)
		}
		t.single[b] = token
	}
	t.bytes = t.Vocabulary
	for i, m := range t.Merges {
		if n := int32(len(t.Vocabulary)); min(m[0], m[1]) < 0 || max(m[0], m[1]) >= n {
			return fmt.Errorf("merge %d: got %v, want tokens from 0 to %d", i, m, n-1)
		}
		joined := bytes.Join([][]byte{t.bytes[m[0]], t.bytes[m[1]]}, nil)
		token, ok := of[string(joined)]
		if !ok {
			return fmt.Errorf("merge %d: the vocabulary lacks the token %.40q", i, joined)
		}
		t.results = append(t.results, token)
	}
	return nil
}
