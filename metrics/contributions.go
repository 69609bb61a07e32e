package metrics

import (
	"context"
	"math"
)

// contributing is the fraction of the largest contribution from which a unit counts as contributing.
const contributing = 0.01

// otherWeights says why what weighs atoms by codes is not applicable.
const otherWeights = "a deeper decoder weighs its atoms by other values than the codes"

// otherAtoms returns why the codes do not weigh the atoms, y = s(sum_j h_j w_j + b), "" where they do.
func otherAtoms(s *Subject) string {
	switch {
	case s.Atoms.Indirect != "":
		return s.Atoms.Indirect
	case s.Atoms.Count != s.Units:
		return otherWeights
	}
	return ""
}

// scales are the lengths |w_j|_2 of the atoms. The contribution of unit j to an image is h_j |w_j|_2: multiplying a unit's
// code by a factor and dividing its atom by it leaves it as it is.
func (a *Atoms) scales() []float64 {
	scales := make([]float64, a.Count)
	for j := range scales {
		sum := 0.0
		for _, v := range a.row(j) {
			sum += float64(v) * float64(v)
		}
		scales[j] = math.Sqrt(sum)
	}
	return scales
}

// ofContributions returns the meter of a mean over images of a function of |h_j| |w_j|, which must not keep its argument; a
// meter of one value that is not applicable where codes do not weigh atoms.
func ofContributions(s *Subject, of func(contributions []float64) float64) Meter {
	if why := otherAtoms(s); why != "" {
		return Fixed(NotApplicable(why))
	}
	return &contributionMeter{scales: s.Atoms.scales(), of: of}
}

type contributionMeter struct {
	scales []float64
	of     func([]float64) float64
	sum    imageSum
}

// Add implements [Meter].
func (m *contributionMeter) Add(b *Batch) error {
	k := len(m.scales)
	m.sum.add(len(b.Codes)/k, 64, func(i int) float64 {
		return m.of(absolute(b.Codes[i*k:(i+1)*k], m.scales))
	})
	return nil
}

// absolute returns |code_j| scales_j.
func absolute(code []float32, scales []float64) []float64 {
	c := make([]float64, len(code))
	for j, v := range code {
		c[j] = math.Abs(float64(v)) * scales[j]
	}
	return c
}

// Values implements [Meter].
func (m *contributionMeter) Values(context.Context) ([]Value, error) {
	return []Value{Number(m.sum.mean(1))}, nil
}
