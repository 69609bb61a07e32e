package comparison_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/metrics"
	"tessera/show/comparison"
)

const declared = `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 2, batch = 20 }
`

// trained trains the model with some settings and returns its folder.
func trained(t *testing.T, dir, name string, sets ...string) string {
	t.Helper()
	file, err := config.Load("models.toml", []byte(declared))
	if err != nil {
		t.Fatal(err)
	}
	var changes []config.Set
	for _, text := range sets {
		s, err := config.ParseSet(text)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, s)
	}
	m, err := file.Model("small", changes...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	r, err := tessera.Train(context.Background(), m, tessera.Options{Out: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSeedsOfOneDeclarationAreOneModel(t *testing.T) {
	dir := t.TempDir()
	var runs []string
	for _, seed := range []string{"train.seed=1", "train.seed=2", "train.seed=3"} {
		runs = append(runs, trained(t, dir, "a"+seed[11:], seed), trained(t, dir, "b"+seed[11:], seed, "loss.0.weight=0.3"))
	}
	got, err := comparison.Compare(context.Background(), runs, comparison.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Models) != 2 || len(got.Models[0].Runs) != 3 || got.Models[1].Label != "B" || len(got.Settings) != 1 ||
		got.Settings[0].Key != "loss.0.weight" || got.Settings[0].Values[1] != "0.3" {
		t.Fatalf("got %d models, settings %+v", len(got.Models), got.Settings)
	}
	var a, b []float64 // measured one by one
	for i, run := range runs {
		r, err := tessera.Open(run, tessera.Options{})
		if err != nil {
			t.Fatal(err)
		}
		measured, err := r.Evaluate(context.Background(), nil)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		mse, _ := measured.Number("mse")
		if i%2 == 0 {
			a = append(a, mse)
		} else {
			b = append(b, mse)
		}
	}
	want, err := metrics.PairedDifference(a, b)
	if err != nil {
		t.Fatal(err)
	}
	row := got.Metrics[0]
	if row.Name != "mse" || row.Cells[1].Paired == nil || *row.Cells[1].Paired != want || math.Abs(row.Cells[0].Mean-(a[0]+a[1]+a[2])/3) > 1e-15 {
		t.Errorf("got %+v, want the difference %+v", row, want)
	}
	if row.Cells[0].Best == row.Cells[1].Best || row.Cells[0].Best != (row.Cells[0].Mean < row.Cells[1].Mean) {
		t.Errorf("the best is marked wrongly: %+v", row.Cells)
	}
	if got.Models[0].Seeded == nil || got.Models[0].First != nil || got.Models[1].First == nil {
		t.Errorf("atoms: %+v %+v", got.Models[0], got.Models[1])
	}
}

func TestModelsOfOtherImagesAreNotRanked(t *testing.T) {
	dir := t.TempDir()
	got, err := comparison.Compare(context.Background(), []string{
		trained(t, dir, "a"), trained(t, dir, "b", "dataset.count=80"), trained(t, dir, "c", "encoder.0.units=7"),
		trained(t, dir, "d", "dataset.seed=2"), // as many images, of the same name
	}, comparison.Options{})
	if err != nil {
		t.Fatal(err)
	}
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

// The first model has a deeper decoder, whose atoms no code weighs.
func TestAMetricOfOneModelOnlyHasNoBest(t *testing.T) {
	dir := t.TempDir()
	got, err := comparison.Compare(context.Background(), []string{
		trained(t, dir, "a", `decoder=[{ kind = "dense", units = 6 }, { kind = "dense" }]`), trained(t, dir, "b"),
	}, comparison.Options{})
	if err != nil {
		t.Fatal(err)
	}
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

func TestWhatCannotBeComparedIsAnError(t *testing.T) {
	dir := t.TempDir()
	a := trained(t, dir, "a")
	for says, runs := range map[string][]string{
		"got 1 runs, want at least 2":       {a},
		"the same model with the same seed": {a, a},
		"is not a run":                      {a, dir},
	} {
		if _, err := comparison.Compare(context.Background(), runs, comparison.Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", runs, err, says)
		}
	}
	if _, err := comparison.Compare(context.Context(nil), []string{a, a}, comparison.Options{}); err == nil {
		t.Error("no context is no error")
	}
}
