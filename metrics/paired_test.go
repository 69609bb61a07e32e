package metrics

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
)

// The expected intervals are mean ± scipy.stats.t.ppf(0.975, n - 1) times the standard error, and the p-values those of
// scipy.stats.ttest_rel, computed with SciPy 1.10.
func TestAPairedDifferenceIsStudents(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want Paired
	}{
		{[]float64{1, 2, 4}, []float64{1.5, 2.1, 4.6}, Paired{Pairs: 3, Mean: 0.4, Low: -0.2572410607975597, High: 1.0572410607975595, P: 0.12011730987188017}},
		{[]float64{0.3, 0.1}, []float64{0.2, 0.05}, Paired{Pairs: 2, Mean: -0.075, Low: -0.39265511841080214, High: 0.2426551184108022, P: 0.20483276469913336}},
		{[]float64{1, 2, 3, 4, 5, 6}, []float64{2.1, 3, 4.2, 4.9, 6.1, 7.05}, Paired{Pairs: 6, Mean: 1.0583333333333333, Low: 0.9512257568077193, High: 1.1654409098589473, P: 1.7658336861001997e-06}},
	} {
		got, err := PairedDifference(c.a, c.b)
		if err != nil || got.Holm != got.P || !near(got, c.want, 1e-8) {
			t.Errorf("got %+v, %v, want %+v", got, err, c.want)
		}
	}
	for n, p := range map[int]float64{2: 0.5, 3: 0.25, 6: 1.0 / 32} { // of the sign test
		a, b := make([]float64, n), slices.Repeat([]float64{1}, n)
		if got, err := PairedDifference(a, b); err != nil || got.P != p || got.Shown() != (n == 6) || got.Low != 1 || got.High != 1 {
			t.Errorf("%d equal differences: %+v, %v, want p = %g", n, got, err, p)
		}
	}
	for _, n := range []int{0, 1} {
		expect.AnyError(t, expect.Err(PairedDifference(make([]float64, n), make([]float64, n))), n, "pairs have an interval")
	}
	rounded, err := PairedDifference([]float64{0.1, 0.3, 0.7}, []float64{0.3, 0.5, 0.9})
	if err != nil || rounded.Low != rounded.High || rounded.String() != "no difference shown (+0.2 under each of 3 seeds)" {
		t.Errorf("differences that are equal up to rounding: %+v, %v", rounded, err)
	}
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if got, err := PairedDifference([]float64{1, 2}, []float64{2, v}); err == nil {
			t.Errorf("a difference with %g: %+v", v, got)
		}
	}
	expect.AnyError(t, expect.Err(PairedDifference(make([]float64, 2), make([]float64, 3))), "values without a partner have a difference")
}

func TestADifferenceWhoseIntervalContainsZeroIsNotShown(t *testing.T) {
	for want, p := range map[string]Paired{
		"+0.0013 [0.001, 0.0016]":                      {Mean: 0.00131, Low: 0.00102, High: 0.0016},
		"-18 [-19, -17]":                               {Mean: -18, Low: -19, High: -17},
		"no difference shown [-0.001, 0.0016]":         {Mean: 0.0003, Low: -0.001, High: 0.0016, P: 0.5, Holm: 0.5},
		"equal":                                        {},
		"+1 (the same under every seed)":               {Mean: 1, Low: 1, High: 1, Certain: true},
		"not after correction [0.001, 0.0016]":         {Mean: 0.00131, Low: 0.00102, High: 0.0016, P: 0.01, Holm: 0.2},
		"no difference shown (+1 on each of 4 splits)": {Mean: 1, Low: 1, High: 1, P: 0.125, Holm: 0.125, Split: true, Pairs: 4},
		"no difference shown [-5.1e-05, 0.002]":        {Mean: 0.001, Low: -0.000051, High: 0.002, P: 0.06, Holm: 0.06},
	} {
		expect.Equal(t, p.String(), want, p)
	}
}

// Oracle: SciPy 1.10, with s √(1/4 + 1/4) for the standard error of the mean of four splits.
func TestOverlappingSplitsHaveAWiderInterval(t *testing.T) {
	a, b := []float64{0.81, 0.83, 0.82, 0.825}, []float64{0.815, 0.836, 0.831, 0.829}
	_, ratio, ok := Splits("svm_holdout_accuracy")
	got, err := PairedSplits(a, b, ratio)
	want := Paired{Pairs: 4, Mean: 0.0065, Low: -0.000496558321709706, High: 0.013496558321709661, P: 0.05970771433017911}
	if err != nil || !ok || !got.Split || got.Holm != got.P || !near(got, want, 1e-8) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if plain, _ := PairedDifference(a, b); !plain.Shown() || got.Shown() {
		t.Errorf("got %+v without the correction and %+v with it, want that only the first is shown", plain, got)
	}
	for _, ratio := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		expect.AnyError(t, expect.Err(PairedSplits(a, b, ratio)), "a ratio of", ratio, "has an interval")
	}
	if _, _, ok := Splits("mse"); ok {
		t.Error("mse has splits")
	}
}

func near(a, b Paired, tolerance float64) bool {
	off := func(x, y float64) bool { return math.Abs(x-y) > tolerance }
	return a.Pairs == b.Pairs && !off(a.Mean, b.Mean) && !off(a.Low, b.Low) && !off(a.High, b.High) && !off(a.P, b.P)
}

// The example of R's p.adjust, computed by hand: sorted p-values times 4, 3, 2, 1, and none below the one before it.
func TestHolmCorrectsAWholeTable(t *testing.T) {
	one := func(p float64) *Paired { return &Paired{Mean: 1, Low: 0.5, High: 1.5, P: p, Holm: p} }
	constant := &Paired{Mean: 1, Low: 1, High: 1, Certain: true}
	table := []*Paired{one(0.04), nil, one(0.01), constant, one(0.03), one(0.005), {P: 1, Holm: 1}}
	expect.Equal(t, CorrectHolm(table), 4, "tests are counted")
	for i, want := range map[int]float64{0: 0.06, 2: 0.03, 3: 0, 4: 0.06, 5: 0.02} {
		expect.Near(t, table[i].Holm, want, 1e-15, "p", table[i].P, "becomes")
		expect.Equal(t, table[i].Shown(), want < 0.05, "p", table[i].P, "becomes")
	}
	expect.Equal(t, table[0].String(), "not after correction [0.5, 1.5]")
	many := []*Paired{one(0.6), one(0.7)}
	if CorrectHolm(many); many[0].Holm != 1 || many[1].Holm != 1 {
		t.Errorf("got %g and %g, want at most 1", many[0].Holm, many[1].Holm)
	}
}

// Ends that are equal when rounded to two digits get more digits.
func TestAnIntervalHasTwoDifferentEnds(t *testing.T) {
	for _, c := range []struct {
		p    Paired
		want string
	}{
		{Paired{Mean: 0.6523, Low: 0.6512, High: 0.6534, P: 1e-4, Holm: 1e-4}, "+0.652 [0.651, 0.653]"},
		{Paired{Mean: 0.0013, Low: 0.001, High: 0.0016}, "+0.0013 [0.001, 0.0016]"},
		{Paired{Mean: 1, Low: 1 - 1e-9, High: 1 + 1e-9}, "+1 [1, 1]"},
	} {
		expect.Equal(t, c.p.String(), c.want)
	}
}
