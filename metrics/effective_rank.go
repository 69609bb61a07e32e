package metrics

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"tessera/internal/vectors"
)

// mostRanked is the maximum number of images of [effectiveRank].
const mostRanked = 2000

// Codes of one dimension have 1, codes whose units are independent and vary equally have the number of units.
//
// Source: O. Roy, M. Vetterli, The effective rank: a measure of effective dimensionality, EUSIPCO 2007.
func init() {
	register("effective_rank", "number of dimensions that the codes use", Description{
		Measures: []Measure{{Name: "effective_rank", Better: Higher, Doc: "exp(-Σ p ln p) of the singular values of the codes minus their mean, divided by their sum: the number of " +
			"dimensions that the codes use (Roy and Vetterli 2007). 0 if all codes are equal, at most the number of units. Of at most 2000 samples, evenly spaced"}},
		Reads: ReadsCodes, Ordered: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) { return &rankMeter{newSpaced(s, s.Units, mostRanked)}, nil })
}

// spaced collects rows of values of at most so many images, evenly spaced over all.
type spaced struct {
	width, every, seen int
	rows               []float32
}

func newSpaced(s *Subject, width, most int) spaced {
	every := max(1, (s.Images+most-1)/most)
	return spaced{width: width, every: every, rows: make([]float32, 0, (s.Images+every-1)/every*width)}
}

func (m *spaced) add(rows []float32) {
	for from := 0; from < len(rows); from += m.width {
		if m.seen++; (m.seen-1)%m.every == 0 {
			m.rows = append(m.rows, rows[from:from+m.width]...)
		}
	}
}

type rankMeter struct{ spaced }

func (m *rankMeter) Add(b *Batch) error { m.add(b.Codes); return nil }

func (m *rankMeter) Values(context.Context) ([]Value, error) {
	rank, err := effectiveRank(vectors.Wide(m.rows), m.width)
	return []Value{Number(rank)}, err
}

// effectiveRank returns the effective rank of the rows of a matrix minus their mean, which it subtracts in place.
func effectiveRank(rows []float64, width int) (float64, error) {
	n := len(rows) / width
	means, largest := make([]float64, width), 0.0
	for i, v := range rows {
		means[i%width] += v / float64(n)
		largest = max(largest, math.Abs(v))
	}
	if math.IsNaN(largest) || math.IsInf(largest, 0) {
		return 0, &NotFinite{"effective_rank", largest}
	}
	for i := range rows {
		rows[i] -= means[i%width]
	}
	a, size, transpose := blas64.General{Rows: n, Cols: width, Stride: width, Data: rows}, width, blas.Trans
	if n < width {
		size, transpose = n, blas.NoTrans
	}
	gram := blas64.Symmetric{N: size, Stride: size, Uplo: blas.Upper, Data: make([]float64, size*size)}
	blas64.Syrk(transpose, 1, a, 0, gram)
	var eigen mat.EigenSym
	symmetric := mat.NewSymDense(size, nil)
	symmetric.SetRawSymmetric(gram)
	if !eigen.Factorize(symmetric, false) {
		return 0, errors.New("metrics: effective_rank: the eigenvalues of the codes' covariance do not converge")
	}
	const rounding = 1e-6 // of float32 codes, relative: smaller singular values are rounding errors
	singular, sum := eigen.Values(nil), 0.0
	for i, v := range singular {
		singular[i] = math.Sqrt(max(v, 0))
		if singular[i] <= rounding*largest*math.Sqrt(float64(n)) {
			singular[i] = 0
		}
		sum += singular[i]
	}
	if sum == 0 {
		return 0, nil
	}
	entropy := 0.0
	for _, v := range singular {
		if p := v / sum; p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return math.Exp(entropy), nil
}
