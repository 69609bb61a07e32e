package coder

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// Neighbour is a token with its similarity to a query.
type Neighbour struct {
	Token      string
	Similarity float64 // cosine
}

// WordVectors returns the vectors of words of [train.Trained.WordVectors].
func (c *Coder) WordVectors() (vectors []float32, width int, err error) {
	if err := c.Ready(); err != nil {
		return nil, 0, err
	}
	if vectors, width, err = c.trained.WordVectors(); err != nil {
		err = fmt.Errorf("%s: %w", c.path, err)
	}
	return vectors, width, err
}

// Neighbours is [Words.Neighbours] of [Coder.Words].
func (c *Coder) Neighbours(plus, minus []string, n int) ([]Neighbour, error) {
	w, err := c.Words()
	if err != nil {
		return nil, err
	}
	return w.Neighbours(plus, minus, n)
}

// Words returns the vectors of the tokens of texts.
func (c *Coder) Words() (Words, error) {
	vectors, width, err := c.WordVectors()
	return Words{vectors, width, func(i int) string { return c.Tokens().Name(int32(i)) }, c.index, c.spelled}, err
}

// Words are vectors of words.
type Words struct {
	Vectors []float32
	Width   int // number of values of a vector
	Name    func(i int) string
	Index   func(word string) (i int, ok bool)
	Other   func(word string) []float32 // vector of a word that has no index, nil if it has none; may be nil
}

// Neighbours returns the n words whose vectors have the largest cosine with the sum of the unit vectors of plus, without those of minus. None of
// these is among them. A word of zeros has no neighbours. The error for an unknown word is a [*UnknownToken].
func (w Words) Neighbours(plus, minus []string, n int) ([]Neighbour, error) {
	query, used := make([]float64, w.Width), map[int]bool{}
	for k, list := range [][]string{plus, minus} {
		for _, word := range list {
			if i, ok := w.Index(word); ok {
				used[i] = true
			}
			vector := w.vector(word)
			if vector == nil {
				return nil, &UnknownToken{word}
			}
			size := length(vector)
			if size == 0 {
				return nil, fmt.Errorf("the vector of %q has only zeros: it has no neighbours", word)
			}
			for j, v := range vector {
				query[j] += float64(1-2*k) * float64(v) / size
			}
		}
	}
	square := 0.0
	for _, v := range query {
		square += v * v
	}
	var list []Neighbour
	for i := range len(w.Vectors) / w.Width {
		size := length(w.row(i)) * math.Sqrt(square)
		if used[i] || size == 0 {
			continue
		}
		dot := 0.0
		for j, v := range w.row(i) {
			dot += query[j] * float64(v)
		}
		list = append(list, Neighbour{w.Name(i), dot / size})
	}
	slices.SortStableFunc(list, func(a, b Neighbour) int {
		if a.Similarity > b.Similarity {
			return -1
		} else if a.Similarity < b.Similarity {
			return 1
		}
		return 0
	})
	return list[:min(n, len(list))], nil
}

func (w Words) row(i int) []float32 { return w.Vectors[i*w.Width : (i+1)*w.Width] }

// vector returns the vector of a word, nil if it is unknown.
func (w Words) vector(word string) []float32 {
	if i, ok := w.Index(word); ok {
		return w.row(i)
	} else if w.Other != nil {
		return w.Other(word)
	}
	return nil
}

// Rated is a pair of words with the similarity that people gave it.
type Rated struct {
	First, Second string
	Score         float64
}

// Agreement says how well cosines follow the ratings of pairs.
type Agreement struct {
	Spearman float64  // correlation of the ranks of cosines and ratings, equal ones at their mean rank; NaN if all cosines or all ratings are equal
	Pairs    int      // number of pairs that are compared
	Unknown  []string // words without a vector, or with zeros alone: their pairs are left out
}

// Agreement compares the cosines of pairs of words with ratings (Finkelstein et al. 2001).
func (w Words) Agreement(pairs []Rated) (a Agreement) {
	var cosines, scores []float64
	for _, p := range pairs {
		known := true
		for _, word := range []string{p.First, p.Second} {
			if v := w.vector(word); v == nil || length(v) == 0 {
				known, a.Unknown = false, lists.Add(a.Unknown, word)
			}
		}
		if known {
			cosines, scores = append(cosines, vectors.Cosine(w.vector(p.First), w.vector(p.Second))), append(scores, p.Score)
		}
	}
	a.Pairs = len(scores)
	a.Spearman = stat.Correlation(ranks(cosines), ranks(scores), nil)
	return a
}

// ranks returns the places of values in ascending order; equal values have the mean of theirs.
func ranks(values []float64) []float64 {
	order, places := lists.Range(0, len(values)), make([]float64, len(values))
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			places[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return places
}

// index returns the number of a token of texts.
func (c *Coder) index(word string) (int, bool) {
	if i, ok := c.Tokens().Index(word); ok {
		return int(i), true
	}
	list := c.Tokens().Encode(word) // in lower case, or a single token of bytes
	if len(list) == 1 && int(list[0]) < c.Tokens().Texts() {
		return int(list[0]), true
	}
	return 0, false
}

// spelled returns the vector of a word that the vocabulary does not contain, of its n-grams of characters; nil if words have none, or it is not one word.
func (c *Coder) spelled(word string) []float32 {
	var list []string
	if all := c.Tokens().EncodeOr(word, func(piece string) int32 { list = append(list, piece); return 0 }); len(all) != 1 || len(list) != 1 {
		return nil
	}
	return c.trained.WordVector(list[0])
}

// UnknownToken is the error for a text that is not one token of the vocabulary.
type UnknownToken struct{ Text string }

func (u *UnknownToken) Error() string { return fmt.Sprintf("%q is no token of the vocabulary", u.Text) }

func length(v []float32) float64 {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	return math.Sqrt(square)
}
