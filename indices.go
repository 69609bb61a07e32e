package tessera

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"tessera/data"
	"tessera/internal/random"
	"tessera/train/evaluation"
)

// IndexPrior is a distribution of the indices of a code book, see [Run.IndexPrior].
type IndexPrior struct {
	rows, columns int
	entries       [][]float32 // entries of the code book that the fitted images use, in the order of their first use

	at          [][]float64 // at[t][k]: probability of entry k at token t
	left, above [][]float64 // left[k][l]: probability that an entry k has the entry l on its left; likewise above
}

// indexed returns the layer of a code that consists of entries of a code book: the last layer of the encoder; ok is false for
// another model. An image has rows x columns indices, those of a code without a grid one row.
func (r *Run) indexed() (index string, rows, columns int, ok bool) {
	if r.network == nil || len(r.network.Layout.Encoder) == 0 {
		return "", 0, 0, false
	}
	last := r.network.Layout.Encoder[len(r.network.Layout.Encoder)-1]
	for _, v := range last.Published {
		if v.Entries > 0 && len(v.Shape) == 1 {
			rows, columns = 1, v.Shape[0]
			if shape := last.Out; len(shape) == 3 && shape[0]*shape[1] == columns {
				rows, columns = shape[0], shape[1]
			}
			return last.Path + "." + v.Name, rows, columns, true
		}
	}
	return "", 0, 0, false
}

// DrawFromIndices is [Run.Draw] for a model whose encoder ends in a code book (layer vq): the indices of the tokens are drawn from
// [Run.IndexPrior], and their entries are decoded. The error is [ErrNoSampler] for another model.
func (r *Run) DrawFromIndices(ctx context.Context, n int, seed uint64) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w: no codes can be decoded: %w", r.Path, ErrNoSampler, err)
	}
	prior, err := r.IndexPrior(ctx)
	if err != nil {
		return nil, err
	}
	codes, err := prior.Draw(ctx, n, seed)
	if err != nil {
		return nil, err
	}
	return r.decodeEach(codes)
}

// IndexPrior fits a distribution to the indices that the code book of the last layer of the encoder (vq) gives at most 10,000
// evenly spaced fitted images. Let k be the index of token t, l that of its left neighbour and u that of the token above. The
// tokens are drawn row by row, with
//
//	p(k | t, l, u)  proportional to  p_t(k) p(l | k) p(u | k)
//
// (naive Bayes), without the factors of neighbours that do not exist. p_t is the distribution at one place; those of neighbours are
// the same at all places. All are relative frequencies to which 1 is added for each entry (Laplace). Entries that no fitted image
// uses are never drawn. The tokens of a shape (height, width, values) have neighbours in both directions, those of (tokens, values)
// only left ones. The distribution knows nothing of pairs of tokens that are further apart. It depends only on the run and its
// images, and is fitted once. For T tokens and K used entries it has (T + 2 K) K float64: 17 MB for 1,024 entries, 1.1 GB for 8,192.
// The error is [ErrNoSampler] for a model whose encoder does not end in a code book.
func (r *Run) IndexPrior(ctx context.Context) (*IndexPrior, error) {
	name, rows, columns, ok := r.indexed()
	if !ok {
		return nil, fmt.Errorf("run %s: %w: its encoder does not end in a code book: add a layer vq", r.Path, ErrNoSampler)
	}
	codes, err := r.fittedCodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.codes.Within(ctx); err != nil {
		return nil, err
	}
	defer r.codes.Unlock()
	if r.codes.prior != nil {
		return r.codes.prior, nil
	}
	sample, err := r.Sample(ctx, data.TrainSplit)
	if err != nil {
		return nil, err
	}
	indices, err := (&Answers{Value: name}).answered(ctx, r, evaluation.Spread(sample.Images, evaluation.MostFitted).Scaled(nil), nil)
	if err != nil {
		return nil, err
	}
	prior, err := newIndexPrior(indices.Float32(), codes, rows, columns)
	if err != nil {
		return nil, fmt.Errorf("run %s: %s: %w", r.Path, name, err)
	}
	r.codes.prior = prior
	return prior, nil
}

// newIndexPrior fits a prior to the indices and the codes of images with rows x columns tokens. It returns an error if there is no
// image, or if tokens with equal indices have different values: the code then does not consist of entries. A NaN is such an index.
func newIndexPrior(indices, codes []float32, rows, columns int) (*IndexPrior, error) {
	p := &IndexPrior{rows: rows, columns: columns}
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
			return nil, fmt.Errorf("%w: token %d with the index %v has other values than an entry of the code book", ErrNoSampler, i, index)
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
			sum := 0.0
			for _, n := range row {
				sum += n
			}
			for k := range row {
				row[k] /= sum
			}
		}
	}
	return p, nil
}

// weights sets the weights of all entries at token t of an image, given the entries of the tokens before it.
func (p *IndexPrior) weights(dst []float64, drawn []int, t int) {
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

// Draw implements [metrics.Sampler], for codes. Code i depends only on the seed and i. A prior that [Run.IndexPrior] did not fit gives
// an error.
func (p *IndexPrior) Draw(ctx context.Context, n int, seed uint64) (codes []float32, err error) {
	if p == nil || len(p.entries) == 0 {
		return nil, errors.New("tessera: the prior of indices is not fitted: take that of Run.IndexPrior")
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
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	u := r.Float64() * sum
	for i, w := range weights {
		if u -= w; u < 0 {
			return i
		}
	}
	return len(weights) - 1
}
