package text_test

import (
	"path/filepath"
	"slices"
	"testing"

	"tessera/data"
	"tessera/data/text"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/tokens"
)

// The numbers of n-grams of characters are those of fastText 0.9.2: a Python program with its hash found every row that `fasttext print-ngrams` printed
// in the table of its model, for words of three scripts.
var (
	her = []float32{580, 330, 420, 62, 840}            // minn = 3, maxn = 4, buckets = 1000
	été = []float32{627, 777, 975, 267, 387, 777, 781} // minn = 1, maxn = 2
)

func plus(n int, list []float32) []float32 {
	return lists.Map(list, func(x float32) float32 { return x + float32(n) })
}

func TestSequencesHaveTheNGramsOfFastText(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "her her\ner", "new.txt": "été"})
	s := sequences(filepath.Join(dir, "a.txt"), tokens.Words, 2, "line")
	s.Minn, s.Maxn, s.Buckets, s.Pieces, s.Ngrams, s.Least = 3, 4, 1000, 7, 2, 2
	set, lengths := load(t, s), make([]float32, 2)
	// <pad>, <end> and <unknown> follow the only word; the pairs of tokens have other numbers
	first, second := set.Train.Float32()[:10], set.Train.Float32()[10:]
	expect.Slice(t, append(first[:2:2], first[3:]...), slices.Concat([]float32{0, 0}, plus(4, her), plus(4, her[:2])), "her her", first)
	if want := []float32{3, 2}; !slices.Equal(second[:2], want) || second[9] != 1 {
		t.Errorf("er: got %v, want it to begin with %v and to end with <pad>", second, want)
	}
	set.Train.Gather(lengths, "length", []int{0, 1})
	expect.Slice(t, lengths, []float32{10, 6}, "the lengths")
	s.Minn, s.Maxn, s.Ngrams = 1, 2, 1
	rows, err := data.ReadRows(background, filepath.Join(dir, "new.txt"), []int{9}, data.WithVocabulary(s, set.Tokens))
	fatal.If(t, err)
	expect.Slice(t, rows.Float32(), slices.Concat([]float32{3, 2}, plus(4, été)), "a word that is not in the vocabulary")
	for what, change := range map[string]func(){"minn above maxn": func() { s.Minn = 3 }, "bytes": func() { s.Minn, s.Tokens = 1, tokens.Bytes }} {
		if change(); s.Check() == nil {
			t.Errorf("%s: got no error", what)
		}
	}
}

func TestContextsHaveTheNGramsOfFastText(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "her x her", "new.txt": "Her unseen her"})
	c := contexts(filepath.Join(dir, "a.txt"), func(c *text.Contexts) { c.Minn, c.Maxn, c.Buckets, c.Pieces, c.Least = 3, 4, 1000, 6, 2 })
	set := load(t, c)
	word, there := append([]float32{0}, plus(4, her)...), []float32{1, 1, 1, 1, 1, 1, 0}
	expect.Slice(t, column(set.Train, "pieces"), slices.Repeat(append(word, 0), 2), "the pieces", word)
	expect.Slice(t, column(set.Train, "there"), slices.Repeat(there, 2), there)
	expect.Slice(t, lists.Map(c.PiecesOf(set.Tokens, "her"), func(x int32) float32 { return float32(x) }), word)
	rows, err := data.ReadRows(background, filepath.Join(dir, "new.txt"), set.Shape, data.WithVocabulary(c, set.Tokens))
	fatal.If(t, err)
	expect.Slice(t, rows.Names, []string{"her", "unseen", "her"})
	if got, want := column(rows.Images, "pieces")[7:14], append(c.PiecesOf(set.Tokens, "unseen"), 0); len(want) != 7 || got[6] != 0 || got[0] != float32(want[0]) {
		t.Errorf("unseen: got %v, want %v", got, want)
	}
	if got := column(rows.Images, "near"); got[0] != 0 || got[2] != 0.8 {
		t.Errorf("got the weights %v of the first word, want 0 of the word that is not in the vocabulary, and 0.8 of the next one", got[:10])
	}
}
