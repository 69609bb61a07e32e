package text

import (
	"strings"
	"unicode/utf8"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/tokens"
)

// Subwords are the keys of n-grams of characters of words. Their numbers are base + h mod `buckets`: see [Contexts].
type Subwords struct {
	Minn    int `toml:"minn" want:"in [1,100]" doc:"smallest number of characters of an n-gram of a word"`
	Maxn    int `toml:"maxn" want:"in [0,100]" doc:"largest number of characters of an n-gram of a word; 0 for none"`
	Pieces  int `toml:"pieces" want:"in [1,1000000]" doc:"largest number of such n-grams of a sample; what follows is left out"`
	Buckets int `toml:"buckets" want:"in [1,10000000]" doc:"number of tokens for n-grams"`
}

func (s *Subwords) check() error {
	if s.Maxn > 0 && s.Maxn < s.Minn {
		return part.KeyErrorf("maxn", "got %d, want at least minn = %d, or 0 for none", s.Maxn, s.Minn)
	}
	return nil
}

// append appends the numbers of the n-grams of a word.
func (s *Subwords) append(list []int32, word string, base int) []int32 {
	word = "<" + word + ">"
	for from := 0; from < len(word) && s.Maxn > 0; {
		h, end := uint32(2166136261), from
		for n := 1; n <= s.Maxn && end < len(word); n++ {
			_, size := utf8.DecodeRuneInString(word[end:])
			for ; size > 0; size, end = size-1, end+1 {
				h = (h ^ uint32(int8(word[end]))) * 16777619
			}
			if n >= s.Minn && (n > 1 || from > 0 && end < len(word)) { // < and > alone are no n-grams
				list = append(list, int32(base+int(h%uint32(s.Buckets))))
			}
		}
		_, size := utf8.DecodeRuneInString(word[from:])
		from += size
	}
	return list
}

// PiecesOf returns the rows of a table of vectors whose mean is the vector of a word: its own, if the vocabulary contains it, and those of its n-grams.
// Without maxn there are none.
func (s *Subwords) PiecesOf(t *tokens.Tokenizer, word string) (list []int32) {
	if s.Maxn == 0 {
		return nil
	}
	if token, ok := t.Index(word); ok {
		list = append(list, token)
	}
	pieces := s.append(nil, word, t.Size())
	return append(list, pieces[:min(len(pieces), s.Pieces)]...)
}

// spelled knows the n-grams of words by their numbers. Words that the vocabulary does not contain have numbers from that of all tokens on. Without
// n-grams it knows nothing.
type spelled struct {
	*Subwords
	t     *tokens.Tokenizer
	lists [][]int32        // n-grams of each word, by its number
	index map[string]int32 // numbers of unknown words
	names []string         // of these
}

func (s *Subwords) spell(t *tokens.Tokenizer) *spelled {
	p := &spelled{Subwords: s, t: t, index: map[string]int32{}}
	if s.Maxn > 0 {
		p.lists = make([][]int32, t.Size()) // what no text contains, such as <end>, has none
		for i := range t.Texts() {
			p.lists[i] = s.append(nil, t.Name(int32(i)), t.Size())
		}
	}
	return p
}

// encode returns the numbers of the words of a text.
func (p *spelled) encode(text string) []int32 {
	return p.t.EncodeOr(text, func(word string) int32 {
		number, met := p.index[word]
		if !met {
			number = int32(len(p.lists))
			word = strings.Clone(word)
			p.index[word], p.names, p.lists = number, append(p.names, word), append(p.lists, p.append(nil, word, p.t.Size()))
		}
		return number
	})
}

// name returns the word with a number.
func (p *spelled) name(number int32) string {
	if k := int(number) - p.t.Size(); k >= 0 && p.Maxn > 0 {
		return p.names[k]
	}
	return p.t.Name(number)
}

// known returns the tokens of words: <unknown> for those that the vocabulary does not contain.
func (p *spelled) known(words []int32) []int32 {
	if p.Maxn == 0 {
		return words
	}
	return lists.Map(words, func(number int32) int32 { return min(number, int32(p.t.Size())-1) })
}

// rows returns what [Subwords.PiecesOf] returns for a word.
func (p *spelled) rows(number int32) []int32 {
	if int(number) >= p.t.Size() {
		return p.pieces(number)
	}
	return append([]int32{number}, p.pieces(number)...)
}

// pieces returns the first n-grams of words.
func (p *spelled) pieces(words ...int32) (list []int32) {
	for i := 0; i < len(words) && p.Maxn > 0 && len(list) < p.Pieces; i++ {
		list = append(list, p.lists[words[i]]...)
	}
	return list[:min(len(list), p.Pieces)]
}
