package comparison_test

import (
	"context"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/comparison"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/sweep"
	"tessera/metrics"
)

const declared = `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 2, batch = 20 }
[model.sparse]
kind = "dictionary"
dataset = { name = "bars", count = 200 }
components = 24
nonneg = true
l1 = 0.5
iterations = 20
`

// trained trains the small model with some settings and returns its folder.
func trained(t *testing.T, dir, name string, sets ...string) string {
	t.Helper()
	return trainedModel(t, "small", dir, name, sets...)
}

func trainedModel(t *testing.T, model, dir, name string, sets ...string) string {
	t.Helper()
	file, err := config.Load("models.toml", []byte(declared))
	fatal.If(t, err)
	var changes []config.Set
	for _, text := range sets {
		s, err := config.ParseSet(text)
		fatal.If(t, err)
		changes = append(changes, s)
	}
	m, err := file.Model(model, changes...)
	fatal.If(t, err)
	path := filepath.Join(dir, name)
	r, err := tessera.Train(context.Background(), m, tessera.Options{Out: path})
	fatal.If(t, err)
	fatal.If(t, r.Close())
	return path
}

func TestSeedsOfOneDeclarationAreOneModel(t *testing.T) {
	dir := t.TempDir()
	var runs []string
	for _, seed := range []string{"train.seed=1", "train.seed=2", "train.seed=3"} {
		runs = append(runs, trained(t, dir, "a"+seed[11:], seed), trained(t, dir, "b"+seed[11:], seed, "loss.0.weight=0.3"))
	}
	got, err := comparison.Compare(context.Background(), runs, comparison.Options{})
	fatal.If(t, err)
	if len(got.Models) != 2 || len(got.Models[0].Runs) != 3 || got.Models[1].Label != "B" || len(got.Settings) != 1 ||
		got.Settings[0].Key != "loss.0.weight" || got.Settings[0].Values[1] != "0.3" {
		t.Fatalf("got %d models, settings %+v", len(got.Models), got.Settings)
	}
	var a, b []float64 // values of each seed, measured one by one
	for i, run := range runs {
		r, err := tessera.Open(run, tessera.Options{})
		fatal.If(t, err)
		measured, err := r.Evaluate(context.Background(), nil)
		r.Close()
		fatal.If(t, err)
		mse, _ := measured.Number("mse")
		if i%2 == 0 {
			a = append(a, mse)
		} else {
			b = append(b, mse)
		}
	}
	want, err := metrics.PairedDifference(a, b)
	fatal.If(t, err)
	row := got.Metrics[0]
	if p := row.Cells[1].Paired; p != nil {
		want.Holm = p.Holm // is compared below
	}
	if row.Name != "mse" || row.Cells[1].Paired == nil || *row.Cells[1].Paired != want || math.Abs(row.Cells[0].Mean-(a[0]+a[1]+a[2])/3) > 1e-15 {
		t.Errorf("got %+v, want the difference %+v", row, want)
	}
	tests := 0
	for _, row := range got.Metrics {
		p := row.Cells[1].Paired
		if p != nil && p.Verdict() != metrics.Same && row.SameAs == "" {
			tests++
		}
		for i, cell := range row.Cells {
			better := p != nil && row.Better != metrics.Neither && (p.Mean > 0) == ((row.Better == metrics.Higher) == (i == 1))
			expect.Equal(t, cell.Best, better && p.Shown(), row.Name, got.Models[i].Label, "is marked as best", p)
		}
	}
	if got.Tests != tests || tests < 3 {
		t.Errorf("%d comparisons, want %d", got.Tests, tests)
	}
	if got.Models[0].Seeded == nil || got.Models[0].First != nil || got.Models[1].First == nil {
		t.Errorf("atoms: %+v %+v", got.Models[0], got.Models[1])
	}
}

// The atom of a unit that contributes to no image is arbitrary. Seeds are compared by the others, whose numbers stay.
func TestAtomsThatDoNotContributeAreNotMatched(t *testing.T) {
	dir := t.TempDir()
	runs := lists.Map([]string{"1", "2"}, func(seed string) string { return trainedModel(t, "sparse", dir, seed, "train.seed="+seed) })
	runs = append(runs, trainedModel(t, "sparse", dir, "other", "train.seed=3", "l1=0.49"))
	got, err := comparison.Compare(context.Background(), runs, comparison.Options{})
	fatal.If(t, err)
	var used [][]int
	var of []*metrics.Atoms
	var unused []int
	for _, run := range runs {
		r, err := tessera.Open(run, tessera.Options{})
		fatal.If(t, err)
		images, err := r.Images(context.Background())
		fatal.If(t, err)
		codes, err := r.Encode(images.Float32())
		fatal.If(t, err)
		a := r.Atoms()
		used = append(used, a.Contributing(codes))
		of = append(of, a.Only(used[len(used)-1]))
		unused = append(unused, a.Count-len(used[len(used)-1]))
		measured, err := r.Evaluate(context.Background(), nil)
		fatal.If(t, err)
		if dead, ok := measured.Number("dead_units_contribution"); !ok || int(dead) != unused[len(unused)-1] {
			t.Errorf("%s: %d atoms do not contribute, dead_units_contribution is %g, %v", run, unused[len(unused)-1], dead, ok)
		}
		r.Close()
	}
	if unused[0] == 0 || unused[1] == 0 || unused[2] == 0 {
		t.Fatalf("%d atoms do not contribute, want some of each run", unused)
	}
	want, err := metrics.CompareAtoms(of[:2], 1)
	fatal.If(t, err)
	if first := got.Models[0]; *first.Seeded != *want || !slices.Equal(first.Unused, unused[:2]) {
		t.Errorf("got %+v, %d left out, want %+v, %d", *first.Seeded, first.Unused, *want, unused[:2])
	}
	pairs := got.Models[1].Pairs
	for _, p := range pairs {
		if !slices.Contains(used[0], p.First) || !slices.Contains(used[2], p.Second) {
			t.Errorf("the pair %+v has an atom that does not contribute", p)
		}
	}
	expect.Equal(t, len(pairs), min(len(used[0]), len(used[2])), "pairs of", len(used[0]), len(used[2]))
}

// One seed of each model: the difference is paired by the splits of the SVM, which are measured without being selected.
func TestAMeanOverSplitsIsPairedByThem(t *testing.T) {
	const credit = `dataset={ name = "credit", count = 60, test = 100 }`
	dir := t.TempDir()
	runs := []string{trained(t, dir, "a", credit), trained(t, dir, "b", credit, "encoder.0.units=2")}
	selected := func(name string) metrics.Selection {
		s, err := metrics.Select(name)
		if err == nil {
			err = s.SetText("seed=3")
		}
		fatal.If(t, err)
		return s
	}
	got, err := comparison.Compare(t.Context(), runs, comparison.Options{Metrics: selected("svm_holdout_accuracy")})
	fatal.If(t, err)
	names, ratio, _ := metrics.Splits("svm_holdout_accuracy")
	var splits [2][]float64
	for i, path := range runs {
		r, err := tessera.Open(path, tessera.Options{})
		fatal.If(t, err)
		measured, err := r.Evaluate(t.Context(), selected("svm_holdout"))
		r.Close()
		fatal.If(t, err)
		for _, name := range names {
			v, _ := measured.Number(name)
			splits[i] = append(splits[i], v)
		}
	}
	want, err := metrics.PairedSplits(splits[0], splits[1], ratio)
	fatal.If(t, err)
	if len(got.Metrics) != 1 || got.Metrics[0].Cells[1].Paired == nil || *got.Metrics[0].Cells[1].Paired != want || want.Low == want.High {
		t.Errorf("got %+v, want the difference %+v and no other row", got.Metrics, want)
	}
	expect.Slice(t, got.With, []string{"seed=3"})
}

func TestModelsOfOtherImagesAreNotRanked(t *testing.T) {
	dir := t.TempDir()
	got, err := comparison.Compare(context.Background(), []string{
		trained(t, dir, "a"), trained(t, dir, "b", "dataset.count=80"), trained(t, dir, "c", "encoder.0.units=7"),
		trained(t, dir, "d", "dataset.seed=2"), // as many images, of the same name
	}, comparison.Options{})
	fatal.If(t, err)
	for _, row := range got.Metrics {
		for _, cell := range []comparison.Cell{row.Cells[1], row.Cells[3]} {
			if cell.Best || cell.Paired != nil {
				t.Errorf("%s: measured on other images, and compared: %+v", row.Name, cell)
			}
		}
	}
	if len(got.Models) != 4 || got.Models[2].Seeded != nil || got.Models[2].First == nil {
		t.Errorf("got %+v", got.Models)
	}
}

// The first model has a deeper decoder, so its code does not weight atoms.
func TestAMetricOfOneModelOnlyHasNoBest(t *testing.T) {
	dir := t.TempDir()
	got, err := comparison.Compare(context.Background(), []string{
		trained(t, dir, "a", `decoder=[{ kind = "dense", units = 6 }, { kind = "dense" }]`), trained(t, dir, "b"),
	}, comparison.Options{})
	fatal.If(t, err)
	alone := 0
	for _, row := range got.Metrics {
		if row.Cells[0].Measured || !row.Cells[1].Measured {
			continue
		}
		if alone++; row.Cells[1].Best {
			t.Errorf("%s: the only value %g is marked as the best", row.Name, row.Cells[1].Mean)
		}
	}
	if alone == 0 {
		t.Error("every metric is of both models")
	}
}

// kl, which is not better for being small, compares nothing if only the model with codes in [0,1] has it, unless it is asked for.
func TestANeutralMetricOfOneModelHasNoRow(t *testing.T) {
	dir := t.TempDir()
	runs := []string{trained(t, dir, "a"), trained(t, dir, "b", `encoder=[{ kind = "dense", units = 5, activation = "tanh" }]`)}
	asked, err := metrics.Select("kl", "mse")
	fatal.If(t, err)
	for want, only := range map[bool]metrics.Selection{false: nil, true: asked} {
		got, err := comparison.Compare(context.Background(), runs, comparison.Options{Metrics: only})
		fatal.If(t, err)
		expect.Equal(t, slices.ContainsFunc(got.Metrics, func(row comparison.Metric) bool { return row.Name == "kl" }), want, len(only), "metrics: kl has a row")
	}
}

func TestWhatCannotBeComparedIsAnError(t *testing.T) {
	dir := t.TempDir()
	a := trained(t, dir, "a")
	for says, runs := range map[string][]string{
		"got 1 run, want at least 2":        {a},
		"the same model with the same seed": {a, a},
		"is not a run":                      {a, dir},
	} {
		expect.Error(t, expect.Err(comparison.Compare(context.Background(), runs, comparison.Options{})), says, runs)
	}
	expect.AnyError(t, expect.Err(comparison.Compare(context.Context(nil), []string{a, a}, comparison.Options{})), "no context")
}

// equalUncorrected reports whether two cells are equal but for the correction of their difference, which depends on the number of rows.
func equalUncorrected(a, b comparison.Cell) bool {
	for _, c := range []*comparison.Cell{&a, &b} {
		if c.Best = false; c.Paired != nil {
			plain := *c.Paired
			plain.Holm, c.Paired = 0, &plain
		}
	}
	return reflect.DeepEqual(a, b)
}

func TestASweepStandsForItsTrials(t *testing.T) {
	declared, err := config.Load("models.toml", []byte(declared+"[sweep.s]\nmodel = \"small\"\nseeds = [2, 1]\nset.encoder.0.units = [4, 5]\n"))
	fatal.If(t, err)
	spec, err := declared.Sweep("s")
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "s")
	planned, err := sweep.New(t.Context(), spec, sweep.Options{Out: out, Jobs: 1})
	if err == nil {
		_, err = planned.Run(t.Context())
	}
	fatal.If(t, err)
	got, err := comparison.Compare(t.Context(), []string{out}, comparison.Options{})
	fatal.If(t, err)
	if len(got.Models) != 2 || !slices.Equal(got.Models[0].Seeds, []uint64{1, 2}) || got.Metrics[0].Cells[1].Paired == nil || got.Models[1].First == nil {
		t.Errorf("got %d models, %+v", len(got.Models), got.Models[0])
	}
	names := lists.Map(got.Metrics, func(m comparison.Metric) string { return m.Name })
	if slices.Contains(names, "hoyer_contribution") || !slices.Contains(names, "hoyer") {
		t.Errorf("got %q, want no variants of metrics", names)
	}
	again, err := comparison.Compare(t.Context(), []string{out}, comparison.Options{Metrics: metrics.Default()}) // measured
	if err != nil || len(again.Metrics) <= len(got.Metrics) {
		t.Fatalf("got %d rows, %v, want more than the %d without variants", len(again.Metrics), err, len(got.Metrics))
	}
	for _, row := range got.Metrics { // metrics that are asked for keep their order, others begin with those of the model
		i := slices.IndexFunc(again.Metrics, func(m comparison.Metric) bool { return m.Name == row.Name })
		if i < 0 || !slices.EqualFunc(row.Cells, again.Metrics[i].Cells, equalUncorrected) {
			t.Errorf("%s: stored %+v, row %d of the measured ones", row.Name, row.Cells[1], i)
		}
	}
	expect.Equal(t, got.Metrics[0].Name, planned.Trials[0].Model.Measures()[0], "first")
	if other, err := comparison.Compare(t.Context(), []string{out}, comparison.Options{Reference: "B"}); err != nil || other.Models[0].First == nil || other.Models[1].First != nil {
		t.Errorf("atoms are not compared with those of the reference: %v", err)
	}
}

func TestHeldOutImagesAreMeasured(t *testing.T) {
	dir := t.TempDir()
	held, all := trained(t, dir, "a", "dataset.validation=0.2"), trained(t, dir, "b")
	got, err := comparison.Compare(t.Context(), []string{held, all}, comparison.Options{})
	fatal.If(t, err)
	a, b := got.Models[0], got.Models[1]
	if a.Split != "validation" || a.Images != 12 || a.Note != "" || b.Split != "train" || !strings.Contains(b.Note, "fitted") {
		t.Errorf("got %+v and %+v", a, b)
	}
}

// A key that only one model has is shown only for this model.
func TestSettingsOfOtherModelsHaveNoEmptyDefaults(t *testing.T) {
	dir := t.TempDir()
	got, err := comparison.Compare(t.Context(), []string{trained(t, dir, "a"),
		trained(t, dir, "b", `loss=[{ kind = "mse" }, { kind = "kl", weight = 0.25 }]`)}, comparison.Options{})
	fatal.If(t, err)
	want := []comparison.Setting{{Key: "loss.1.kind", Values: []string{"", `"kl"`}}, {Key: "loss.1.weight", Values: []string{"", "0.25"}}}
	if !reflect.DeepEqual(got.Settings, want) {
		t.Errorf("got  %v\nwant %v", got.Settings, want)
	}
}
