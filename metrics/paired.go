package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Paired is the mean of paired differences with its 95 % confidence interval.
type Paired struct {
	Pairs int     `json:"pairs"`
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	P     float64 `json:"p"`        // two-sided p-value of the mean difference 0
	Holm  float64 `json:"p_holm"`   // P after Holm's correction for all differences of the same table; P if there is only one
	Split bool    `json:"by_split"` // pairs are overlapping splits of the same images, not seeds
}

// Shown reports whether the interval excludes 0 and the difference remains significant at 0.05 after Holm's correction.
func (p Paired) Shown() bool { return (p.Low > 0 || p.High < 0) && p.Holm < 0.05 }

// constant reports whether all differences were equal.
func (p Paired) constant() bool { return p.Low == p.High }

// Finding returns the mean with its sign, or the statement that no difference is shown.
func (p Paired) Finding() string {
	if !p.Shown() {
		return "no difference shown"
	}
	return fmt.Sprintf("%+.*g", p.digits(), p.Mean)
}

// digits returns the number of significant digits, at least 2, with which the mean and the ends of the interval differ.
func (p Paired) digits() int {
	const most = 6
	for n := 2; n < most; n++ {
		low, mean, high := fmt.Sprintf("%.*g", n, p.Low), fmt.Sprintf("%.*g", n, p.Mean), fmt.Sprintf("%.*g", n, p.High)
		if p.constant() || low != mean && mean != high {
			return n
		}
	}
	return most
}

// Interval returns the confidence interval as text, "[0.001, 0.0016]", or the statement that there is none.
func (p Paired) Interval() string {
	if p.constant() && p.Split {
		return "(the same on every split)"
	}
	if p.constant() {
		return "(the same under every seed)"
	}
	return fmt.Sprintf("[%.*g, %.*g]", p.digits(), p.Low, p.digits(), p.High)
}

// String returns the finding with its interval: "+0.0013 [0.001, 0.0016]", "no difference shown [-0.001, 0.0016]", with "over
// 4 splits" if the pairs are splits.
func (p Paired) String() string {
	text := p.Finding() + " " + p.Interval()
	if p.Split {
		text += fmt.Sprintf(" over %d splits", p.Pairs)
	}
	return text
}

// Significance returns the p-values as text: "p = 0.003", with Holm's if it differs: "p = 0.003, 0.024 by Holm"; "" for equal
// differences, which have none.
func (p Paired) Significance() string {
	switch {
	case p.constant():
		return ""
	case p.Holm != p.P:
		return fmt.Sprintf("p = %.2g, %.2g by Holm", p.P, p.Holm)
	}
	return fmt.Sprintf("p = %.2g", p.P)
}

// PairedDifference returns the mean of b_i - a_i and its 95 % confidence interval by Student's t distribution with n - 1
// degrees of freedom, mean ± t s / √n, where s is the standard deviation of the differences. a_i and b_i are values of two
// models with the same seed, or on the same split. Fewer than two pairs and non-finite values are an error.
//
// If all differences are equal up to rounding, for example for two deterministic models, Low and High equal the mean.
//
// The interval assumes that differences are normally distributed. With two or three pairs it is wide: t is 12.7 or 4.3.
func PairedDifference(a, b []float64) (Paired, error) { return pairedDifference(a, b, 0) }

// PairedSplits is [PairedDifference] for random splits of the same images into fitted and held-out ones. ratio is the number
// of held-out images divided by that of the fitted ones. The fitted images overlap, so that the differences are correlated and
// their standard deviation is too small; the standard error of the mean is therefore
//
//	s √(1/n + ratio)
//
// instead of s √(1/n), and Split is true.
//
// Source: Nadeau and Bengio, Inference for the Generalization Error, Machine Learning 52, 2003, the corrected resampled t-test.
func PairedSplits(a, b []float64, ratio float64) (Paired, error) {
	if !(ratio > 0) || math.IsInf(ratio, 0) {
		return Paired{}, fmt.Errorf("metrics: paired difference: got a ratio of held-out to fitted images of %g, want > 0", ratio)
	}
	p, err := pairedDifference(a, b, ratio)
	p.Split = err == nil
	return p, err
}

// pairedDifference adds ratio to 1/n in the variance of the mean.
func pairedDifference(a, b []float64, ratio float64) (Paired, error) {
	n := len(a)
	if n != len(b) || n < 2 {
		return Paired{}, fmt.Errorf("metrics: paired difference: got %d and %d values, want equally many and at least 2", n, len(b))
	}
	sum, squares, largest, spread := 0.0, 0.0, 0.0, 0.0
	for i := range a {
		d := b[i] - a[i]
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return Paired{}, fmt.Errorf("metrics: paired difference: got the values %g and %g, want a finite difference", a[i], b[i])
		}
		sum += d
		largest = max(largest, math.Abs(a[i]), math.Abs(b[i]))
	}
	mean := sum / float64(n)
	for i := range a {
		d := b[i] - a[i] - mean
		squares += d * d
		spread = max(spread, math.Abs(d))
	}
	if spread <= 1e-12*largest {
		p := Paired{Pairs: n, Mean: mean, Low: mean, High: mean}
		if mean == 0 {
			p.P, p.Holm = 1, 1
		}
		return p, nil
	}
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	deviation := math.Sqrt(squares / float64(n-1) * (1/float64(n) + ratio))
	half := student.Quantile(0.975) * deviation
	p := 2 * student.CDF(-math.Abs(mean)/deviation)
	return Paired{Pairs: n, Mean: mean, Low: mean - half, High: mean + half, P: p, Holm: p}, nil
}

// CorrectHolm sets the key Holm of all differences of one table by Holm's step-down method: the i-th smallest of m p-values is
// multiplied by m - i + 1, and none is smaller than the one before it. The probability of one or more false findings in the
// whole table is then at most 0.05, however the differences depend on each other. Differences that are equal under every seed
// are no tests and are not counted; nil is skipped. Intervals remain those of single comparisons.
//
// Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
func CorrectHolm(table []*Paired) {
	tests := slices.DeleteFunc(slices.Clone(table), func(p *Paired) bool { return p == nil || p.constant() })
	slices.SortStableFunc(tests, func(a, b *Paired) int { return cmp.Compare(a.P, b.P) })
	least := 0.0
	for i, p := range tests {
		least = max(least, min(1, float64(len(tests)-i)*p.P))
		p.Holm = least
	}
}
