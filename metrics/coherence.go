package metrics

import (
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/vectors"
)

// Source: D. L. Donoho, X. Huo, Uncertainty principles and ideal atomic decomposition, IEEE Trans. Information Theory 47(7),
// 2001.
func init() {
	register("coherence", "how alike the atoms are", Description{
		Measures: []Measure{
			{Name: "coherence", Better: Lower, Doc: "largest \\|cosine\\| between two atoms. Atoms of zeros are left out"},
			{Name: "coherence_mean", Better: Lower, Doc: "mean \\|cosine\\| over all pairs of atoms. Atoms of zeros are left out"},
		},
		Reads: ReadsAtoms, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		directions, n := s.Atoms.directions(), 0
		pixels := s.Atoms.Pixels()
		for j, scale := range s.Atoms.scales() {
			if scale != 0 {
				copy(directions[n*pixels:], directions[j*pixels:(j+1)*pixels])
				n++
			}
		}
		if n < 2 {
			return Fixed(NotApplicable("fewer than two atoms are not zero")), nil
		}
		most, sum := 0.0, 0.0
		const rows = 64
		for from := 0; from < n; from += rows {
			to := min(from+rows, n)
			cosines := cosinesOf(directions[from*pixels:to*pixels], directions[:to*pixels], pixels)
			for i := from; i < to; i++ {
				for _, c := range cosines[(i-from)*to : (i-from)*to+i] {
					most, sum = max(most, math.Abs(c)), sum+math.Abs(c)
				}
			}
		}
		return Fixed(Number(min(most, 1)), Number(sum/float64(n*(n-1)/2))), nil
	})
}

// directions returns the atoms divided by their lengths; all-zero atoms stay zero.
func (a *Atoms) directions() []float64 {
	d, pixels := vectors.Wide(a.Values), a.Pixels()
	for j, scale := range a.scales() {
		for p := range pixels {
			if scale != 0 {
				d[j*pixels+p] /= scale
			}
		}
	}
	return d
}

// cosinesOf returns the products of all rows of a with all rows of b, which are cosines if the rows have length 1 or 0.
func cosinesOf(a, b []float64, width int) []float64 {
	m, n := len(a)/width, len(b)/width
	c := make([]float64, m*n)
	kernel.Float64().Gemm(false, true, m, n, width, 1, a, width, b, width, 0, c, n)
	return c
}
