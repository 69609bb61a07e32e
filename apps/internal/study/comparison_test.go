package study

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera/apps/show/figures"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/metrics"
)

// comparedRows returns a small table with one row for each case: within the tolerance, outside by one metric, outside by both,
// without a trial, without p and beta, and unpublished.
func comparedRows() []ComparedRow {
	nan := math.NaN()
	published := func(model, declared string, p, beta, mse, hoyer, maxApprox, svm float64, note string) figures.Published {
		return figures.Published{Source: "table 1", Dataset: "bars", Model: model, Declared: declared, Note: note, Point: figures.Point{P: p, Beta: beta,
			Values: numbers("max_approx_bias_dilated", 2*maxApprox, "svm_accuracy", svm, "svm_std", svm/20, "mse", mse, "hoyer", hoyer, "max_approx", maxApprox)}}
	}
	measured := func(model string, p, beta float64, epochs, done int, mse, hoyer float64) Measured {
		m := Measured{Model: model, Dataset: "bars", P: p, Beta: beta, Epochs: epochs, Done: done, Trials: 3}
		if done > 0 {
			m.Mean = numbers("mse", mse, "hoyer", hoyer, "max_approx", 10*mse, "max_approx_bias_dilated", 11*mse,
				"max_approx_reconstructed", 9*mse, "max_approx_clipped", mse, "dead_units", 2)
		}
		if done > 1 {
			m.Deviation = numbers("mse", mse/100, "hoyer", 0.001)
		}
		return m
	}
	return pair(
		[]figures.Published{
			published("nmf", "nmf", nan, nan, 0.0109, 0.65, 0.107, 0.812, "fitted on the test images"),
			published("shallow", "shallow-p20", 0.2, 0.001, 0.0100, 0.30, 1, 0.8, ""),
			published("shallow", "shallow-p10", 0.1, 0.001, 0.0200, 0.40, 1, nan, ""),
			published("shallow", "shallow-p01", 0.01, 0.001, 0.0300, 0.50, 1, nan, ""),
			published("wide", "", nan, nan, 0.0040, nan, nan, nan, ""),
		},
		[]Measured{
			measured("parts", nan, nan, 100, 1, 0.0111, 0.656),
			measured("shallow-p01", 0.01, 0.001, 500, 0, nan, nan),
			measured("shallow-p20", 0.2, 0.001, 500, 3, 0.0112, 0.3203),
			measured("shallow-p10", 0.1, 0.001, 500, 2, 0.0181, 0.379),
			measured("nmf", nan, nan, 0, 3, 0.01091, 0.6498),
		})
}

func TestComparisonsAreTheGoldenTables(t *testing.T) {
	rows := comparedRows()
	shown, _ := shownTable(rows)
	for name, text := range map[string]string{
		"comparison.md":  markdown(t, judgedTable(rows)) + "\n" + markdown(t, shown),
		"comparison.csv": string(comparisonCSV(rows)),
	} {
		golden := filepath.Join("testdata", name)
		if *update {
			fatal.If(t, os.WriteFile(golden, []byte(text), 0o644))
		}
		want, err := os.ReadFile(golden)
		fatal.If(t, err)
		expect.Equal(t, text, string(want), golden)
	}
}

func TestVerdictsByHand(t *testing.T) {
	rows := comparedRows()
	got := lists.Map(rows, func(r ComparedRow) string { return r.Name() + ": " + r.Verdict() })
	want := []string{
		"nmf: within",
		"shallow-p20: OUTSIDE: mse, Hoyer", // 12 %, 0.0203
		"shallow-p10: OUTSIDE: Hoyer",      // -9.5 %, -0.021
		"shallow-p01: not measured",
		"wide: not measured",
		"parts: ",
	}
	expect.Slice(t, got, want)
	expect.Near(t, rows[1].MSEDifference(), 0.12, 1e-12, "the difference of 0.0112 and 0.01")
}

func TestARowWithoutAPublishedMetricIsNotWithin(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		published, measured metrics.Values
		want                string
	}{
		{numbers("mse", 1, "hoyer", 0.5), numbers("mse", 1, "hoyer", 0.5), "within"},
		{numbers("mse", 1, "hoyer", 0.5), numbers("dead_units", 1), "not measured: mse, Hoyer"},
		{numbers("mse", 1, "hoyer", 0.5), numbers("mse", 1), "not measured: Hoyer"},
		{numbers("mse", 1, "hoyer", 0.5), numbers("mse", 2), "OUTSIDE: mse"},
		{numbers("mse", 1), numbers("mse", 1), "within"},
		{numbers("mse", 1), metrics.Values{{Name: "mse", Number: nan}}, "not measured: mse"},
		{numbers("mse", 0), numbers("mse", 0), "not measured: mse"}, // no relative difference
		{numbers("max_approx", 1), numbers("mse", 1), ""},
	} {
		r := ComparedRow{Published: &figures.Published{Point: figures.Point{Values: c.published}}, Measured: &Measured{Done: 1, Mean: c.measured}}
		expect.Equal(t, r.Verdict(), c.want, "published", c.published, "measured", c.measured)
	}
}

func TestRowsAreOfTheSameDataTargetAndWeight(t *testing.T) {
	p := figures.Published{Dataset: "bars", Declared: "m", Point: figures.Point{P: 0.1, Beta: 0.5}}
	for _, c := range []struct {
		m    Measured
		want bool
	}{
		{Measured{Model: "m", Dataset: "bars", P: 0.1, Beta: 0.5}, true},
		{Measured{Model: "m", Dataset: "bars", P: math.NaN(), Beta: math.NaN()}, true},
		{Measured{Model: "m", Dataset: "bars", P: 0.2, Beta: 0.5}, false},
		{Measured{Model: "m", Dataset: "bars", P: 0.1, Beta: 0.6}, false},
		{Measured{Model: "m", Dataset: "swimmer", P: 0.1, Beta: 0.5}, false},
		{Measured{Model: "n", Dataset: "bars", P: 0.1, Beta: 0.5}, false},
	} {
		expect.Equal(t, corresponds(p, c.m), c.want, c.m)
	}
}

func TestOneTrialIsOfOneRowOnly(t *testing.T) {
	p := figures.Published{Dataset: "bars", Declared: "m", Point: figures.Point{P: math.NaN(), Beta: math.NaN()}}
	rows := pair([]figures.Published{p, p}, []Measured{{Model: "m", Dataset: "bars"}})
	if len(rows) != 2 || rows[0].Measured == nil || rows[1].Measured != nil {
		t.Errorf("got %+v", rows)
	}
}

// numbers returns values by name. Its arguments are a name, its number, the next name, and so on; a NaN omits the name.
func numbers(pairs ...any) (v metrics.Values) {
	for i := 0; i < len(pairs); i += 2 {
		var number float64
		switch n := pairs[i+1].(type) {
		case int:
			number = float64(n)
		case float64:
			number = n
		}
		if !math.IsNaN(number) {
			v.Set(pairs[i].(string), number)
		}
	}
	return v
}

func TestADifferenceOfFewerSeedsSaysHowMany(t *testing.T) {
	m := &Measured{Model: "small", P: math.NaN(), Beta: math.NaN(), Pairs: 3, Differences: map[string]metrics.Paired{
		"mse": {Pairs: 3, Mean: 2, Low: 1, High: 3}, "accuracy": {Pairs: 2, Mean: 2, Low: 1, High: 3}}}
	got := differenceTable([]ComparedRow{{Measured: m}}, []string{"mse", "accuracy"})
	if want := []any{"small", "-", "-", "3", "+2 [1, 3]", "+2 [1, 3] (2 seeds)"}; len(got.Rows) != 1 || !slices.Equal(got.Rows[0], want) {
		t.Errorf("got %q, want %q", got.Rows, want)
	}
}
