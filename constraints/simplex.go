package constraints

import "math"

// Simplex keeps every row (atom) non-negative with a given sum: the projection argmin ||v-w|| over v >= 0, sum of v =
// Sum, row by row. It is v = max(w - t, 0), where the threshold t gives the required sum.
//
// The threshold is computed iteratively, beginning with all entries. In each round, t is the sum of the remaining
// entries minus Sum, divided by their number, and then the entries below t are removed. The iteration ends when no
// entry is below t. The largest entry is subtracted from all entries first, so that large weights lose no digits.
// Sources: Duchi, Shalev-Shwartz, Singer and Chandra, Efficient projections onto the l1-ball for learning in high
// dimensions, 2008; the iteration, which needs no sorting, is that of Michelot, 1986.
type Simplex struct {
	Sum float64 `toml:"sum" want:"> 0" doc:"sum of a row"`
}

func init() {
	Registry.Register("simplex", "every row non-negative with the given sum: w <- max(w - t, 0)", func() Constraint { return &Simplex{Sum: 1} })
}

func (s *Simplex) Project(w []float32, shape []int) {
	for row := range rows(w, shape) {
		if d := s.violation(row); !(d > s.slack()) {
			continue // already feasible, or NaN
		}
		largest := math.Inf(-1)
		for _, v := range row {
			largest = max(largest, float64(v))
		}
		t := s.threshold(row, largest)
		for i, v := range row {
			row[i] = float32(max(float64(v)-largest-t, 0))
		}
	}
}

// threshold returns t relative to the largest entry. It lies in [-Sum, 0).
func (s *Simplex) threshold(row []float32, largest float64) float64 {
	t, before := -s.Sum, 0
	for {
		sum, count := 0.0, 0
		for _, v := range row {
			if d := float64(v) - largest; d > t {
				sum, count = sum+d, count+1
			}
		}
		if count == before || count == 0 {
			return t
		}
		t, before = (sum-s.Sum)/float64(count), count
	}
}

// slack returns a bound on the rounding error of the sum of a projected row: half a unit in the last place of every
// value.
func (s *Simplex) slack() float64 { return 0.51 * rounding * s.Sum }

// Violation implements [Constraint]. It is the magnitude of the most negative weight or the largest error of the sum of
// a row, whichever is larger.
func (s *Simplex) Violation(w []float32, shape []int) float64 {
	return worstRow(w, shape, s.violation)
}

func (s *Simplex) violation(row []float32) float64 {
	sum, below := 0.0, 0.0
	for _, v := range row {
		sum += float64(v)
		below = max(below, -float64(v))
	}
	return max(below, math.Abs(sum-s.Sum))
}
