package constraints

import "math"

// UnitNorm keeps every row (atom) at Euclidean norm 1: the projection argmin ||v-w|| over ||v|| = 1, row by row, which
// is v = w / ||w||.
//
// If a row is 0, all points of the sphere have the same distance from it, and its values all become 1/sqrt(n). This
// choice is deterministic. Like scaling, it keeps a non-negative parameter non-negative, so nonneg followed by
// unit_norm satisfies both constraints.
type UnitNorm struct{}

func init() {
	Registry.Register("unit_norm", "every row of Euclidean norm 1: w <- w / ||w||",
		func() Constraint { return &UnitNorm{} })
}

func (UnitNorm) RowWise() {}

func (UnitNorm) Project(w []float32, shape []int) {
	for row := range rows(w, shape) {
		switch norm := length(row); {
		case norm == 0:
			even := float32(1 / math.Sqrt(float64(len(row))))
			for i := range row {
				row[i] = even
			}
		case !(math.Abs(norm-1) <= rounding):
			rescale(row, 1/norm)
		}
	}
}

// Violation implements [Constraint]. It is the largest absolute difference between the norm of a row and 1.
func (UnitNorm) Violation(w []float32, shape []int) float64 {
	return worstRow(w, shape, func(row []float32) float64 { return math.Abs(length(row) - 1) })
}
