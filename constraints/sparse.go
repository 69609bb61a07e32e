package constraints

import (
	"math"

	"tessera/internal/hoyer"
)

// Sparse keeps every row (atom) non-negative with a given sparseness: the projection argmin ||v-w|| over v >= 0 with
//
//	(sqrt n - |v|_1/|v|_2) / (sqrt n - 1) = Sparseness
//
// for rows of n values. A row of zeros is also feasible. The norm of a row is free. The direction of v is that of
// Hoyer's projection, and its length is the component of w along this direction; v is 0 if this component is not
// positive. A row whose norm is below 1e-38 is not changed.
//
// Source: Hoyer, Non-negative matrix factorization with sparseness constraints, 2004. Hoyer also fixes the norm: add
// unit_norm for this.
type Sparse struct {
	Sparseness float64 `toml:"sparseness" want:"in (0,1]" doc:"Hoyer's sparseness of a row: near 0 for equal values, 1 for a single value"`
}

func init() {
	Registry.Register("sparse", "every row non-negative with the given Hoyer sparseness", func() Constraint { return &Sparse{Sparseness: 0.6} })
}

// smallestSparse is the norm below which a row is not changed, because its values have too few digits for a given
// sparseness.
const smallestSparse = 1e-38

func (s *Sparse) Project(w []float32, shape []int) {
	for row := range rows(w, shape) {
		norm := length(row)
		if d := s.violation(row); !(d > rounding*norm) || norm < smallestSparse {
			continue // already feasible, or NaN
		}
		hoyer.ProjectCone(row, hoyer.Norm(len(row), s.Sparseness))
	}
}

// Violation implements [Constraint]. It is the magnitude of the most negative weight or the largest | |v|_1 - c |v|_2 |
// / sqrt n of a row, whichever is larger. c is the ratio |v|_1/|v|_2 at the given sparseness.
func (s *Sparse) Violation(w []float32, shape []int) float64 {
	return worstRow(w, shape, s.violation)
}

func (s *Sparse) violation(row []float32) float64 {
	sum, below := 0.0, 0.0
	for _, v := range row {
		sum += math.Abs(float64(v))
		below = max(below, -float64(v))
	}
	n := len(row)
	return max(below, math.Abs(sum-hoyer.Norm(n, s.Sparseness)*length(row))/math.Sqrt(float64(n)))
}
