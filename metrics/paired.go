package metrics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"tessera/internal/numeral"
)

// Paired is the mean of paired differences with its 95 % confidence interval.
type Paired struct {
	Pairs   int     `json:"pairs"`
	Mean    float64 `json:"mean"`
	Low     float64 `json:"low"` // Low and High equal Mean if all differences are equal: there is no interval then
	High    float64 `json:"high"`
	P       float64 `json:"p"`                 // two-sided p-value of the mean difference 0
	Holm    float64 `json:"p_holm"`            // P after Holm's correction for all differences of the same table; P if there is only one
	Split   bool    `json:"by_split"`          // pairs are overlapping splits of the same images, not seeds
	Certain bool    `json:"certain,omitempty"` // neither model depends on the seed: the difference is no estimate
}

// Verdict says what a paired difference shows.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "equal"                // all differences are 0 up to rounding
	Different   Verdict = "shown"                // significant at 0.05 after Holm's correction, or certain
	Uncorrected Verdict = "not after correction" // significant at 0.05 as a single comparison only
	Unclear     Verdict = "no difference shown"
)

// Verdict judges the difference. It is the only place that does.
func (p Paired) Verdict() Verdict {
	switch {
	case p.equal():
		return Same
	case p.Certain || p.Holm < 0.05:
		return Different
	case p.P < 0.05:
		return Uncorrected
	}
	return Unclear
}

// Shown reports whether the verdict is [Different].
func (p Paired) Shown() bool { return p.Verdict() == Different }

// constant reports whether all differences are equal.
func (p Paired) constant() bool { return p.Low == p.High }

// equal reports whether all differences are 0.
func (p Paired) equal() bool { return p.constant() && p.Mean == 0 }

func (p Paired) MarshalJSON() ([]byte, error) {
	type plain Paired
	return json.Marshal(struct {
		plain
		Verdict Verdict `json:"verdict"`
	}{plain(p), p.Verdict()})
}

// Finding returns the mean with its sign if the difference is shown, else the verdict.
func (p Paired) Finding() string {
	if p.Shown() {
		return p.signed()
	}
	return string(p.Verdict())
}

// digits returns the number of significant digits, at least 2, with which the mean and the ends of the interval differ.
func (p Paired) digits() int {
	const most = 6
	for n := 2; n < most; n++ {
		low, mean, high := numeral.Digits(p.Low, n), numeral.Digits(p.Mean, n), numeral.Digits(p.High, n)
		if p.constant() || low != mean && mean != high {
			return n
		}
	}
	return most
}

func (p Paired) signed() string {
	text := numeral.Digits(p.Mean, p.digits())
	if p.Mean > 0 {
		text = "+" + text
	}
	return text
}

// Interval returns the confidence interval as text, "[0.001, 0.0016]", or, for equal differences, which have none, what was
// seen; "" for differences of 0.
func (p Paired) Interval() string {
	switch {
	case p.equal():
		return ""
	case p.Certain:
		return "(the same under every seed)"
	case p.constant() && p.Split:
		return fmt.Sprintf("(%s on each of %d splits)", p.signed(), p.Pairs)
	case p.constant():
		return fmt.Sprintf("(%s under each of %d seeds)", p.signed(), p.Pairs)
	}
	return "[" + numeral.Digits(p.Low, p.digits()) + ", " + numeral.Digits(p.High, p.digits()) + "]"
}

// String returns the finding with its interval: "+0.0013 [0.001, 0.0016]", "no difference shown [-0.001, 0.0016]", "not after
// correction [0.001, 0.0016]", "equal", with "over 4 splits" if the pairs are splits.
func (p Paired) String() string {
	text := strings.TrimSpace(p.Finding() + " " + p.Interval())
	if p.Split && !p.constant() {
		text += fmt.Sprintf(" over %d splits", p.Pairs)
	}
	return text
}

// Significance returns the p-values as text: "p = 0.003", with Holm's if it differs: "p = 0.003, 0.024 by Holm"; "" where
// nothing was tested.
func (p Paired) Significance() string {
	switch {
	case !p.tested():
		return ""
	case p.Holm != p.P:
		return "p " + numeral.P(p.P) + ", " + strings.TrimPrefix(numeral.P(p.Holm), "= ") + " by Holm"
	}
	return "p " + numeral.P(p.P)
}

// tested reports whether the difference is a test of a hypothesis.
func (p Paired) tested() bool { return !p.Certain && !p.equal() }

// Minus returns the difference with the two models exchanged.
func (p Paired) Minus() Paired {
	p.Mean, p.Low, p.High = 0-p.Mean, 0-p.High, 0-p.Low
	return p
}

// rounding is the part of a value that may differ by rounding: two units in the last place of a float32.
const rounding = 1.0 / (1 << 22)

// EqualUpToRounding reports whether two values differ by float32 rounding at most. Values that are missing (NaN) are equal.
func EqualUpToRounding(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= rounding*max(math.Abs(a), math.Abs(b))
}

// PairedDifference returns the mean of b_i - a_i and its 95 % confidence interval by Student's t distribution with n - 1
// degrees of freedom, mean ± t s / √n, where s is the standard deviation of the differences. a_i and b_i are values of two
// models with the same seed, or on the same split. Fewer than two pairs and non-finite values are an error.
//
// The interval assumes that differences are normally distributed. With two or three pairs it is wide: t is 12.7 or 4.3.
//
// If all differences are equal up to float32 rounding, s says nothing about the next seed, as happens by chance for metrics that
// count. Low and High then equal the mean, and P is that of the sign test, 2^(1-n). Differences that are all 0 up to rounding
// have the mean 0 and P = 1.
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
		return Paired{}, fmt.Errorf("metrics: paired difference: got a ratio of held-out to fitted samples of %g, want > 0", ratio)
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
	sum, squares, largest, spread, equal := 0.0, 0.0, 0.0, 0.0, true
	for i := range a {
		d := b[i] - a[i]
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return Paired{}, fmt.Errorf("metrics: paired difference: got the values %g and %g, want a finite difference", a[i], b[i])
		}
		sum += d
		largest, equal = max(largest, math.Abs(a[i]), math.Abs(b[i])), equal && EqualUpToRounding(a[i], b[i])
	}
	mean := sum / float64(n)
	for i := range a {
		d := b[i] - a[i] - mean
		squares += d * d
		spread = max(spread, math.Abs(d))
	}
	switch {
	case equal:
		return Paired{Pairs: n, P: 1, Holm: 1}, nil
	case spread <= rounding*largest:
		p := math.Ldexp(1, 1-n)
		return Paired{Pairs: n, Mean: mean, Low: mean, High: mean, P: p, Holm: p}, nil
	}
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	deviation := math.Sqrt(squares / float64(n-1) * (1/float64(n) + ratio))
	half := student.Quantile(0.975) * deviation
	p := 2 * student.CDF(-math.Abs(mean)/deviation)
	return Paired{Pairs: n, Mean: mean, Low: mean - half, High: mean + half, P: p, Holm: p}, nil
}

// CorrectHolm sets the key Holm of all differences of one table by Holm's step-down method: the i-th smallest of m p-values is
// multiplied by m - i + 1, and none is smaller than the one before it. The probability of one or more false findings in the
// whole table is then at most 0.05, however the differences depend on each other. CorrectHolm returns m: differences that are
// certain, or all 0, are no tests and are not counted; nil is skipped. Intervals remain those of single comparisons.
//
// Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
func CorrectHolm(table []*Paired) (tests int) {
	counted := slices.DeleteFunc(slices.Clone(table), func(p *Paired) bool { return p == nil || !p.tested() })
	slices.SortStableFunc(counted, func(a, b *Paired) int { return cmp.Compare(a.P, b.P) })
	least := 0.0
	for i, p := range counted {
		least = max(least, min(1, float64(len(counted)-i)*p.P))
		p.Holm = least
	}
	return len(counted)
}
