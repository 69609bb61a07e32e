// Package indexprior contains a distribution of images whose codes consist of entries of a code book.
package indexprior

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"tessera/internal/lists"
	"tessera/internal/random"
)

// Prior is a distribution of the indices of the tokens of an image: tessera.Run.IndexPrior gives the formula.
type Prior struct {
	rows, columns int
	entries       [][]float32 // entries of the code book that the images use, in the order of their first use

	at          [][]float64 // at[t][k]: probability of entry k at token t
	left, above [][]float64 // left[k][l]: probability that an entry k has the entry l on its left; likewise above
}

// Fit fits a prior to the indices and the codes of images with rows x columns tokens. It returns an error if there is no image, or if
// tokens with equal indices have different values: the code then does not consist of entries. A NaN is such an index.
func Fit(indices, codes []float32, rows, columns int) (*Prior, error) {
	p := &Prior{rows: rows, columns: columns}
	tokens, of := rows*columns, map[float32]int{}
	if len(indices) == 0 || len(indices)%tokens != 0 {
		return nil, fmt.Errorf("got %d indices, want those of at least one image of %d x %d tokens", len(indices), rows, columns)
	}
	values := len(codes) / len(indices)
	used := make([]int, len(indices)) // indices of entries
	for i, index := range indices {
		k, known := of[index]
		entry := codes[i*values : (i+1)*values]
		if !known {
			k = len(p.entries)
			of[index] = k
			p.entries = append(p.entries, entry)
		}
		if index != index || !slices.Equal(entry, p.entries[k]) {
			return nil, fmt.Errorf("token %d with the index %v has other values than an entry of the code book", i, index)
		}
		used[i] = k
	}
	table := func(n int) [][]float64 { // counts that begin with 1
		list := make([][]float64, n)
		for i := range list {
			list[i] = make([]float64, len(p.entries))
			for k := range list[i] {
				list[i][k] = 1
			}
		}
		return list
	}
	p.at, p.left, p.above = table(tokens), table(len(p.entries)), table(len(p.entries))
	for i, k := range used {
		t := i % tokens
		p.at[t][k]++
		if t%columns > 0 {
			p.left[k][used[i-1]]++
		}
		if t >= columns {
			p.above[k][used[i-columns]]++
		}
	}
	for _, counts := range [][][]float64{p.at, p.left, p.above} {
		for _, row := range counts {
			sum := lists.Sum(row)
			for k := range row {
				row[k] /= sum
			}
		}
	}
	return p, nil
}

// weights sets the weights of all entries at token t of an image, given the entries of the tokens before it.
func (p *Prior) weights(dst []float64, drawn []int, t int) {
	for k := range dst {
		dst[k] = p.at[t][k]
		if t%p.columns > 0 {
			dst[k] *= p.left[k][drawn[t-1]]
		}
		if t >= p.columns {
			dst[k] *= p.above[k][drawn[t-p.columns]]
		}
	}
}

// Draw draws the codes of n images. Code i depends only on the seed and i.
func (p *Prior) Draw(ctx context.Context, n int, seed uint64) (codes []float32, err error) {
	if n < 0 {
		return nil, fmt.Errorf("prior of indices: got %d images to draw, want at least 0", n)
	}
	drawn, weights := make([]int, p.rows*p.columns), make([]float64, len(p.entries))
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(seed, "indices", uint64(i))
		for t := range drawn {
			p.weights(weights, drawn, t)
			drawn[t] = categorical(weights, r)
			codes = append(codes, p.entries[drawn[t]]...)
		}
	}
	return codes, nil
}

// categorical draws an index with probabilities proportional to the weights.
func categorical(weights []float64, r *rand.Rand) int {
	u := r.Float64() * lists.Sum(weights)
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}
