package comparison

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/sweep"
	"tessera/metrics"
)

// column contains the values of one setting: by metric and seed; NaN for a trial that has not finished.
type column map[string][]float64

// stored returns the results of a sweep with a setting for each column, whose seeds are 1, 2, ...
func stored(split data.Split, names []string, columns ...column) *sweep.Results {
	r := &sweep.Results{Split: string(split), Keys: []string{"k"}}
	for i, c := range columns {
		one := sweep.Setting{Model: "m", Values: map[string]any{"k": float64(i)}}
		for j := range c[names[0]] {
			row := sweep.Row{Trial: fmt.Sprintf("%d-%d", i, j), Seed: uint64(j + 1), Values: one.Values}
			one.Trials = append(one.Trials, row.Trial)
			var values metrics.Values
			for _, name := range names {
				if v := c[name][j]; !math.IsNaN(v) {
					values.Set(name, v)
				}
			}
			if len(values) > 0 {
				one.Seeds = append(one.Seeds, row.Seed)
				row.Metrics = &metrics.Result{Dataset: "bars", Split: string(split), Images: 10, Values: values}
			}
			r.Trials = append(r.Trials, row)
		}
		r.Settings = append(r.Settings, one)
	}
	return r
}

func bars(seed uint64, s data.Selection) *config.Dataset {
	return &config.Dataset{Name: "bars", Source: &data.Bars{Count: 10, Seed: seed}, Selection: s}
}

// compared returns the comparison of stored results on the same images, with the parameters of the settings, "" for other ones
// under every seed.
func compared(t *testing.T, r *sweep.Results, reference string, parameters ...string) *Table {
	t.Helper()
	trials := map[string]Trial{}
	for i, one := range r.Settings {
		for _, trial := range one.Trials {
			known := Trial{Dataset: bars(1, data.Selection{}), Counted: "images", Parameters: trial}
			if len(parameters) > i && parameters[i] != "" {
				known.Parameters = parameters[i]
			}
			trials[trial] = known
		}
	}
	got, err := OfSweep(r, "s", trials, reference, nil)
	fatal.If(t, err)
	return got
}

// verdict returns the verdict on a metric of a model, "" without a difference.
func (t *Table) verdict(name string, model int) metrics.Verdict {
	for _, row := range t.Metrics {
		if row.Name == name && row.Cells[model].Paired != nil {
			return row.Cells[model].Paired.Verdict()
		}
	}
	return ""
}

// Counts coincide by chance: of 27 pairs in each hundred, none differed in the mean. Only models that do not depend on the seed
// differ with certainty.
func TestEqualDifferencesAreCertainOnlyOfModelsWithoutRandomness(t *testing.T) {
	names := []string{"parts_found"}
	r := stored(data.TestSplit, names, column{"parts_found": {15, 16, 15}}, column{"parts_found": {16, 17, 16}})
	got := compared(t, r, "")
	p := got.Metrics[0].Cells[1].Paired
	if p.P != 0.25 || p.Certain || p.Verdict() != metrics.Unclear || got.Metrics[0].Cells[1].Best || got.Tests != 1 {
		t.Errorf("three equal signs: %+v, %q, %d comparisons", p, p, got.Tests)
	}
	r = stored(data.TestSplit, names, column{"parts_found": {15, 15, 15}}, column{"parts_found": {16, 16, 16}})
	if p := compared(t, r, "").Metrics[0].Cells[1].Paired; p.Certain || p.Shown() {
		t.Errorf("equal counts of trained models that differ: %+v", p)
	}
	got = compared(t, r, "", "one", "other")
	if p := got.Metrics[0].Cells[1].Paired; !p.Certain || p.String() != "+1 (the same under every seed)" || !got.Metrics[0].Cells[1].Best || got.Tests != 0 {
		t.Errorf("equal parameters under every seed: %+v, %q, %d comparisons", p, p, got.Tests)
	}
	if p := compared(t, r, "", "one").Metrics[0].Cells[1].Paired; p.Certain {
		t.Errorf("one of the models depends on the seed: %+v", p)
	}
}

func TestWhatSaysNothingIsNotCounted(t *testing.T) {
	names := []string{"mse", "hoyer", "hoyer_atoms", "negative_weights", "additivity_lost", "max_approx"}
	a := column{"mse": {0.1, 0.12, 0.11}, "hoyer": {0.5, 0.52, 0.51}, "hoyer_atoms": {0.5, 0.52, 0.51 * (1 + 1e-8)},
		"negative_weights": {0, 0, 0}, "additivity_lost": {1e-8, 2e-8, 1e-8}, "max_approx": {0.3, 0.3, 0.3}}
	b := column{"mse": {0.3, 0.33, 0.32}, "hoyer": {0.4, 0.41, 0.43}, "hoyer_atoms": {0.4, 0.41, 0.43},
		"negative_weights": {0, 0, 0}, "additivity_lost": {4e-8, 3e-8, 9e-8}, "max_approx": {0.3, 0.3 * (1 + 1e-8), 0.3}}
	got := compared(t, stored(data.TestSplit, names, a, b), "")
	expect.Equal(t, got.Tests, 2, "comparisons are counted, want 2: mse and hoyer")
	for _, name := range names[3:] {
		expect.Equal(t, got.verdict(name, 1), metrics.Same, name)
	}
	if row := got.Metrics[2]; row.SameAs != "hoyer" || *row.Cells[1].Paired != *got.Metrics[1].Cells[1].Paired {
		t.Errorf("got %+v", row)
	}
	expect.Contains(t, got.Words(), "Holm's correction for 2 comparisons", "the number is not said")
}

func TestADifferenceThatDoesNotSurviveTheCorrectionHasItsOwnWord(t *testing.T) {
	a, b := column{}, column{}
	var names []string
	for i := range 20 {
		name := fmt.Sprint("m", i)
		names = append(names, name)
		a[name], b[name] = []float64{1, 2, 3, 4}, []float64{1.5, 1.2, 3.9 + float64(i), 3.7}
	}
	b["m0"] = []float64{1.3, 2.35, 3.2, 4.33} // p = 0.0032
	got := compared(t, stored(data.TestSplit, names, a, b), "").Metrics[0].Cells[1].Paired
	if got.P > 0.05 || got.Holm < 0.05 || got.Verdict() != metrics.Uncorrected || !strings.HasPrefix(got.String(), "not after correction [") {
		t.Errorf("got %+v, %q", got, got)
	}
}

// Computed by hand: the differences over the seeds 1, 2, 4 are 0.1, 0.3, 0.2, with mean 0.2 and standard deviation 0.1. The 97.5 %
// quantile of Student's t with two degrees of freedom is 4.3027, so half the interval is 4.3027 * 0.1 / √3 = 0.24842.
// A metric that only some seeds have, such as a divergence that is defined for small codes, is selected by its own value.
func TestAMetricThatOneSeedLacksHasNoMean(t *testing.T) {
	lacking := column{"mse": {1, 2, 3}, "cosine": {0.5, math.NaN(), 0.6}}
	all := column{"mse": {2, 3.1, 4}, "cosine": {0.8, 0.9, 0.7}}
	table := compared(t, stored(data.TestSplit, []string{"mse", "cosine"}, all, lacking), "")
	for _, row := range table.Metrics {
		cells := row.Cells
		expect.Equal(t, cells[0].Measured, true, row.Name)
		expect.Equal(t, cells[1].Measured, row.Name == "mse", row.Name)
		expect.Equal(t, cells[1].Paired != nil, row.Name == "mse", row.Name, "has a difference")
	}
	expect.Equal(t, len(table.Metrics), 2)
}

func TestTheReferenceIsTheFirstWithSeveralSeedsOrChosen(t *testing.T) {
	gone := math.NaN()
	r := stored(data.TestSplit, []string{"mse"}, column{"mse": {5, gone, gone, gone, gone}}, column{"mse": {1, 2, 3, 4, gone}},
		column{"mse": {gone, gone}}, column{"mse": {1.1, 2.3, gone, 4.2, 9}})
	got := compared(t, r, "")
	if len(got.Models) != 3 || got.Reference().Label != "B" || got.Models[0].Against != "B" || got.Common(0) != 1 || got.Common(2) != 3 || got.Metrics[0].Cells[0].Paired != nil {
		t.Fatalf("got %+v", got)
	}
	p := got.Metrics[0].Cells[2].Paired
	if math.Abs(p.Mean-0.2) > 1e-12 || math.Abs(p.Low+0.04842) > 1e-4 || math.Abs(p.High-0.44842) > 1e-4 || p.Shown() {
		t.Errorf("got %+v, want 0.2 in [-0.0484, 0.4484]", p)
	}
	for _, chosen := range []string{"C", "s/trials/3-1"} {
		back := compared(t, r, chosen)
		if q := back.Metrics[0].Cells[1].Paired; back.Reference().Label != "C" || back.Metrics[0].Cells[2].Paired != nil || *q != p.Minus() {
			t.Errorf("%s: got %+v, want the reverse of %+v", chosen, q, p)
		}
	}
	expect.Error(t, expect.Err(OfSweep(r, "s", nil, "D", nil)), `got "D", want one of A (m), B (m), C (m)`)
}

func TestTrialsOnOtherImagesAreNotPaired(t *testing.T) {
	fifth, tenth := data.Selection{Validation: data.Validation{Fraction: 0.2}}, data.Selection{Validation: data.Validation{Fraction: 0.1}}
	csv := func(scale string, s data.Selection) *config.Dataset {
		var scaling data.Scale
		if e, ok := data.Scalings.Lookup(scale); ok {
			scaling = data.Scale{e.New()}
		}
		return &config.Dataset{Name: "csv", Source: &data.Files{Kind: "csv", Scale: scaling}, Selection: s}
	}
	limited := fifth
	limited.Limit = 10
	few := fifth
	few.Labelled = 0.5
	two := func(split data.Split) *sweep.Results {
		return stored(split, []string{"mse"}, column{"mse": {1, 2}}, column{"mse": {3, 5}})
	}
	for _, c := range []struct {
		what        string
		split       data.Split
		first, then *config.Dataset
		pairs       int
	}{
		{"the same set", data.ValidationSplit, bars(1, fifth), bars(1, fifth), 2},
		{"fewer labels", data.ValidationSplit, bars(1, fifth), bars(1, few), 2},
		{"another fraction", data.ValidationSplit, bars(1, fifth), bars(1, tenth), 0},
		{"another fraction, on all images", data.AllSplit, bars(1, fifth), bars(1, tenth), 2},
		{"fewer fitted images, not scaled", data.TestSplit, csv("", fifth), csv("", limited), 2},
		{"fewer fitted images, scaled by them", data.TestSplit, csv("standardise", fifth), csv("standardise", limited), 0},
		{"fewer labels, scaled by the fitted images", data.AllSplit, csv("minmax", fifth), csv("minmax", few), 2},
		{"other images of one name", data.AllSplit, bars(1, fifth), bars(2, fifth), 0},
		{"an unknown set", data.AllSplit, bars(1, fifth), nil, 0},
	} {
		trials := map[string]Trial{"0-0": {Dataset: c.first}, "1-0": {Dataset: c.then}}
		got, err := OfSweep(two(c.split), "s", trials, "", nil)
		if err != nil || got.Common(1) != c.pairs || (got.Metrics[0].Cells[1].Paired != nil) != (c.pairs == 2) {
			t.Errorf("%s: %d pairs, %+v, %v, want %d", c.what, got.Common(1), got.Metrics[0].Cells[1].Paired, err, c.pairs)
		}
	}
	r := two(data.TestSplit)
	r.Trials[3].Metrics.Images = 9
	if got := compared(t, r, ""); got.Common(1) != 1 || got.Metrics[0].Cells[1].Paired != nil {
		t.Errorf("trials on 9 and 10 images: %+v", got.Metrics[0].Cells[1].Paired)
	}
}

// measuredTable is the comparison that [Compare] makes of runs with the results of a sweep.
func measuredTable(t *testing.T, r *sweep.Results) *Table {
	t.Helper()
	got := &Table{}
	for _, one := range r.Settings {
		m := &Model{Name: one.Model, Dataset: "bars", Split: r.Split, Images: 10}
		for _, row := range r.Trials {
			if row.Metrics != nil && slices.Contains(one.Trials, row.Trial) {
				m.members = append(m.members, member{path: sweep.TrialPath("s", row.Trial), seed: row.Seed, result: row.Metrics, images: "bars", parameters: row.Trial})
			}
		}
		if len(m.members) > 0 {
			got.Models = append(got.Models, m)
		}
	}
	if len(got.Models) == 0 {
		return got
	}
	got.label()
	fatal.If(t, got.judge("", nil))
	return got
}

// Law: runs that are measured and the stored results of their sweep have the same verdicts, stars and number of comparisons, and
// the JSON document says the verdict that people read. The results are random: counts, equal rows, missing values, unfinished trials.
func TestMeasuredRunsAndStoredResultsHaveTheSameVerdicts(t *testing.T) {
	seen := map[metrics.Verdict]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 45))
		names := []string{"mse", "hoyer", "hoyer_contribution", "dead_units", "negative_weights", "class.accuracy"}
		var columns []column
		settings, seeds := 2+r.IntN(3), 1+r.IntN(6)
		for range settings {
			c, shift := column{}, r.NormFloat64()*math.Pow(10, -3*r.Float64())
			for range seeds {
				unfinished := r.IntN(12) == 0
				for _, name := range names {
					v := shift + 0.05*r.NormFloat64()
					switch {
					case unfinished || name == "class.accuracy" && r.IntN(20) == 0:
						v = math.NaN()
					case name == "dead_units":
						v = float64(r.IntN(2)) + math.Round(3*shift)
					case name == "hoyer_contribution" && seed%2 == 0:
						v = c["hoyer"][len(c["hoyer"])-1]
					case name == "negative_weights" && seed%3 > 0:
						v = 0
					}
					c[name] = append(c[name], v)
				}
			}
			columns = append(columns, c)
		}
		results := stored(data.TestSplit, names, columns...)
		a, b := compared(t, results, ""), measuredTable(t, results)
		if a.Tests != b.Tests || len(a.Metrics) != len(b.Metrics) {
			t.Fatalf("seed %d: %d comparisons of %d rows, and %d of %d", seed, a.Tests, len(a.Metrics), b.Tests, len(b.Metrics))
		}
		for i, row := range a.Metrics {
			for j, cell := range row.Cells {
				other := b.Metrics[i].Cells[j]
				if cell.Best != other.Best || cell.value("") != other.value("") || (cell.Paired == nil) != (other.Paired == nil) {
					t.Fatalf("seed %d: %s: %+v and %+v", seed, row.Name, cell, other)
				}
				if cell.Paired == nil {
					continue
				}
				seen[cell.Paired.Verdict()]++
				if *cell.Paired != *other.Paired {
					t.Fatalf("seed %d: %s: %+v and %+v", seed, row.Name, cell.Paired, other.Paired)
				}
				if v := said(t, cell); v != cell.Paired.Verdict() || v != metrics.Different && !strings.HasPrefix(cell.Paired.String(), string(v)) {
					t.Fatalf("seed %d: %s: JSON says %q, the text %q", seed, row.Name, v, cell.Paired)
				}
			}
		}
	}
	for _, v := range []metrics.Verdict{metrics.Same, metrics.Different, metrics.Uncorrected, metrics.Unclear} {
		if seen[v] < 20 {
			t.Errorf("%d verdicts are %q: the results are too narrow", seen[v], v)
		}
	}
}

// said returns the verdict in the JSON of a cell.
func said(t *testing.T, c Cell) metrics.Verdict {
	t.Helper()
	text, err := json.Marshal(c)
	fatal.If(t, err)
	var read struct {
		Difference struct{ Verdict metrics.Verdict }
	}
	fatal.If(t, json.Unmarshal(text, &read))
	return read.Difference.Verdict
}

// Without any difference between the settings, at most one table in twenty shows one: with 400 tables, at most 20 are expected, and
// more than 40 come by chance once in ten thousand times.
func TestTablesWithoutADifferenceRarelyShowOne(t *testing.T) {
	wrong := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 7))
		names := []string{"a", "b", "c", "parts_found"}
		var columns []column
		for range 3 {
			c := column{}
			for range 4 {
				for _, name := range names[:3] {
					c[name] = append(c[name], r.NormFloat64())
				}
				c["parts_found"] = append(c["parts_found"], math.Round(15.8+0.4*r.NormFloat64()))
			}
			columns = append(columns, c)
		}
		got := compared(t, stored(data.TestSplit, names, columns...), "")
		if slices.ContainsFunc(got.Metrics, func(m Metric) bool {
			return slices.ContainsFunc(m.Cells, func(c Cell) bool { return c.Best || c.Paired != nil && c.Paired.Shown() })
		}) {
			wrong++
		}
	}
	if wrong > 40 {
		t.Errorf("%d of 400 tables show a difference", wrong)
	}
}

// A comparison of many settings fits a terminal of 80 columns.
func TestAComparisonFitsATerminal(t *testing.T) {
	columns := lists.Of(9, func(i int) column {
		return column{"mse": {0.1234567 * float64(i), 0.2, 0.3}, "explained_variance": {0.1, 0.2 + 0.01*float64(i*i), 0.3345678}}
	})
	got := compared(t, stored(data.TestSplit, []string{"mse", "explained_variance"}, columns...), "")
	var text strings.Builder
	fatal.If(t, got.Document().Text(&text, doc.Screen{Width: 80}))
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	expect.Contains(t, text.String(), "I - A (95 %)", &text)
	expect.Contains(t, text.String(), "for 1", &text)
}
