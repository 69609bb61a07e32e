package metrics

import (
	"context"
	"slices"

	"tessera/internal/parallel/team"
)

// The sparsity of a code of one unit is 0.
//
// Source: P. O. Hoyer, Non-negative matrix factorization with sparseness constraints, JMLR 5, 2004.
func init() {
	register("hoyer_contribution", "sparsity of what the units contribute", Description{
		Measures: []Measure{{Name: "hoyer_contribution", Better: Higher,
			Doc: "mean over samples of the sparsity of the contributions c_j = \\|h_j\\| \\|w_j\\|₂, (√k - \\|c\\|₁ / \\|c\\|₂) / (√k - 1). `hoyer` of the codes " +
				"that the model has with atoms of length 1. A sample of zeros, whose largest contribution is below 10⁻⁹ of the largest of all samples, counts as 0. " +
				"Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsSums, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		return &contributionHoyer{units: s.Units, scales: s.Atoms.scales()}, nil
	})
}

// black is the largest contribution to an image, as a fraction of the largest to any image, below which the image counts as one
// without contributions. What an encoder leaves of a black image may be exactly 0 or rounding errors, whose sparsity means nothing.
const black = 1e-9

// contributionHoyer is the meter of hoyer_contribution. Only all images together tell which ones are black.
type contributionHoyer struct {
	units              int
	scales             []float64
	sparsity, greatest []float64 // of each image
}

func (h *contributionHoyer) Add(b *Batch) error {
	n, before := len(b.Codes)/h.units, len(h.sparsity)
	h.sparsity = append(h.sparsity, make([]float64, n)...)
	h.greatest = append(h.greatest, make([]float64, n)...)
	team.For(n, 64, func(from, to int) {
		for i := from; i < to; i++ {
			c := absolute(b.Codes[i*h.units:(i+1)*h.units], h.scales)
			h.sparsity[before+i], h.greatest[before+i] = contributionSparsity(c), slices.Max(c)
		}
	})
	return nil
}

func (h *contributionHoyer) Values(context.Context) ([]Value, error) {
	if len(h.sparsity) == 0 {
		return []Value{Number(0)}, nil
	}
	least, sum := black*slices.Max(h.greatest), 0.0
	for i, v := range h.sparsity {
		if !(h.greatest[i] < least) { // also of codes that are not numbers
			sum += v
		}
	}
	return []Value{Number(sum / float64(len(h.sparsity)))}, nil
}

// contributionSparsity returns the Hoyer sparsity of contributions, which are non-negative.
func contributionSparsity(c []float64) float64 {
	var l1, squares float64
	for _, v := range c {
		l1 += v
		squares += v * v
	}
	return sparsity(len(c), l1, squares)
}
