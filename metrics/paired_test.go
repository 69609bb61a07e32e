package metrics

import (
	"math"
	"testing"
)

// The expected intervals are mean ± scipy.stats.t.ppf(0.975, n - 1) times the standard error, computed with SciPy 1.10.
func TestAPairedDifferenceIsStudents(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want Paired
	}{
		{[]float64{1, 2, 4}, []float64{1.5, 2.1, 4.6}, Paired{3, 0.4, -0.2572410607975597, 1.0572410607975595}},
		{[]float64{0.3, 0.1}, []float64{0.2, 0.05}, Paired{2, -0.075, -0.39265511841080214, 0.2426551184108022}},
		{[]float64{1, 2, 3, 4, 5, 6}, []float64{2.1, 3, 4.2, 4.9, 6.1, 7.05}, Paired{6, 1.0583333333333333, 0.9512257568077193, 1.1654409098589473}},
	} {
		got, err := PairedDifference(c.a, c.b)
		if err != nil || got.Pairs != c.want.Pairs || math.Abs(got.Mean-c.want.Mean) > 1e-12 || math.Abs(got.Low-c.want.Low) > 1e-8 || math.Abs(got.High-c.want.High) > 1e-8 {
			t.Errorf("got %+v, %v, want %+v", got, err, c.want)
		}
	}
	if got, err := PairedDifference([]float64{1, 2}, []float64{2, 3}); err != nil || !got.Shown() || got.Low != 1 || got.High != 1 {
		t.Errorf("equal differences: %+v, %v", got, err)
	}
	for _, n := range []int{0, 1} {
		if _, err := PairedDifference(make([]float64, n), make([]float64, n)); err == nil {
			t.Errorf("%d pairs have an interval", n)
		}
	}
	rounded, err := PairedDifference([]float64{0.1, 0.3, 0.7}, []float64{0.3, 0.5, 0.9})
	if err != nil || rounded.Low != rounded.High || rounded.String() != "+0.2 (the same under every seed)" {
		t.Errorf("differences that are equal up to rounding: %+v, %v", rounded, err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if got, err := PairedDifference([]float64{1, 2}, []float64{2, v}); err == nil {
			t.Errorf("a difference with %g: %+v", v, got)
		}
	}
	if _, err := PairedDifference(make([]float64, 2), make([]float64, 3)); err == nil {
		t.Error("values without a partner have a difference")
	}
}

func TestADifferenceWhoseIntervalContainsZeroIsNotShown(t *testing.T) {
	for want, p := range map[string]Paired{
		"+0.0013 [0.001, 0.0016]":                         {Mean: 0.00131, Low: 0.00102, High: 0.0016},
		"-18 [-19, -17]":                                  {Mean: -18, Low: -19, High: -17},
		"no difference shown [-0.001, 0.0016]":            {Mean: 0.0003, Low: -0.001, High: 0.0016},
		"no difference shown (the same under every seed)": {},
		"no difference shown [-5.1e-05, 0.002]":           {Mean: 0.001, Low: -0.000051, High: 0.002},
	} {
		if got := p.String(); got != want {
			t.Errorf("%+v: got %q, want %q", p, got, want)
		}
	}
}
