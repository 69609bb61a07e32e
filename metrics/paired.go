package metrics

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Paired is the mean of paired differences with its 95 % confidence interval.
type Paired struct {
	Pairs int     `json:"pairs"`
	Mean  float64 `json:"mean"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Shown reports whether the interval excludes 0.
func (p Paired) Shown() bool { return p.Low > 0 || p.High < 0 }

// constant reports whether all differences were equal.
func (p Paired) constant() bool { return p.Low == p.High }

// Finding returns the mean with its sign, or the statement that no difference is shown.
func (p Paired) Finding() string {
	if !p.Shown() {
		return "no difference shown"
	}
	return fmt.Sprintf("%+.2g", p.Mean)
}

// Interval returns the confidence interval as text, "[0.001, 0.0016]", or the statement that there is none.
func (p Paired) Interval() string {
	if p.constant() {
		return "(the same under every seed)"
	}
	return fmt.Sprintf("[%.2g, %.2g]", p.Low, p.High)
}

// String returns the finding with its interval: "+0.0013 [0.001, 0.0016]", "no difference shown [-0.001, 0.0016]".
func (p Paired) String() string { return p.Finding() + " " + p.Interval() }

// PairedDifference returns the mean of b_i - a_i and its 95 % confidence interval by Student's t distribution with n - 1
// degrees of freedom, mean ± t s / √n, where s is the standard deviation of the differences. a_i and b_i are values of two
// models with the same seed, or on the same split. Fewer than two pairs and non-finite values are an error.
//
// If all differences are equal up to rounding, for example for two deterministic models, Low and High equal the mean.
//
// The interval assumes that differences are normally distributed. With two or three pairs it is wide: t is 12.7 or 4.3.
func PairedDifference(a, b []float64) (Paired, error) {
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
		return Paired{Pairs: n, Mean: mean, Low: mean, High: mean}, nil
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	half := t * math.Sqrt(squares/float64(n-1)/float64(n))
	return Paired{Pairs: n, Mean: mean, Low: mean - half, High: mean + half}, nil
}
