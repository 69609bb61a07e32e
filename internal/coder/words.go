package coder

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config"
	"tessera/metrics"
)

// ErrNoWords is the error for a model that was not fitted to texts.
var ErrNoWords = errors.New("its samples are no texts: want a model of the data sets text, cooccurrence or tokens")

// Neighbour is a token with its similarity to a query.
type Neighbour struct {
	Token      string
	Similarity float64 // cosine
}

// WordVectors returns a vector of a number of values for every token of texts, in the order of the vocabulary: the table of the first layer
// `embedding`, or else the values of the word in all atoms.
func (c *Coder) WordVectors() (vectors []float32, width int, err error) {
	if err := c.Ready(); err != nil {
		return nil, 0, err
	}
	if c.Tokens() == nil {
		return nil, 0, fmt.Errorf("%s: %w", c.path, ErrNoWords)
	}
	n := c.Tokens().Texts()
	if m := c.trained.Model; m != nil {
		at := slices.IndexFunc(m.Layout.Encoder, func(l config.Placed) bool { return l.Kind == "embedding" })
		for _, p := range m.Parameters {
			if at >= 0 && p.Path == m.Layout.Encoder[at].Path+".weight" && p.Shape[0] >= n {
				return p.Data[:n*p.Shape[1]], p.Shape[1], nil
			}
		}
	}
	var a *metrics.Atoms
	if err := c.Do(func(inner metrics.Coder) error { a = inner.Atoms(); return nil }); err != nil {
		return nil, 0, err
	}
	if a == nil || a.Pixels() != n {
		return nil, 0, fmt.Errorf("%s: it has no vectors of words: neither a layer embedding nor atoms with a value for every word", c.path)
	}
	vectors = make([]float32, n*a.Count)
	for j := range a.Count {
		for i, v := range a.Values[j*n : (j+1)*n] {
			vectors[i*a.Count+j] = v
		}
	}
	return vectors, a.Count, nil
}

// Neighbours returns the n tokens whose vectors have the largest cosine with the sum of the unit vectors of plus, without those of minus. None of
// these is among them. A token of zeros has no neighbours. The error for an unknown token is a [*UnknownToken].
func (c *Coder) Neighbours(plus, minus []string, n int) ([]Neighbour, error) {
	vectors, width, err := c.WordVectors()
	if err != nil {
		return nil, err
	}
	row := func(i int) []float32 { return vectors[i*width : (i+1)*width] }
	query, used := make([]float64, width), map[int]bool{}
	for k, list := range [][]string{plus, minus} {
		for _, word := range list {
			i, ok := c.index(word)
			if !ok {
				return nil, &UnknownToken{word}
			}
			used[i] = true
			size := length(row(i))
			if size == 0 {
				return nil, fmt.Errorf("the vector of %q has only zeros: it has no neighbours", word)
			}
			for j, v := range row(i) {
				query[j] += float64(1-2*k) * float64(v) / size
			}
		}
	}
	square := 0.0
	for _, v := range query {
		square += v * v
	}
	var list []Neighbour
	for i := range len(vectors) / width {
		size := length(row(i)) * math.Sqrt(square)
		if used[i] || size == 0 {
			continue
		}
		dot := 0.0
		for j, v := range row(i) {
			dot += query[j] * float64(v)
		}
		list = append(list, Neighbour{c.Tokens().Name(int32(i)), dot / size})
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
