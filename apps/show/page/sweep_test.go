package page_test

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/sweep"
)

// ran runs the sweep of a text with the given changes, and returns its folder.
func ran(t *testing.T, text, name string, changes ...config.Set) string {
	t.Helper()
	declared, err := config.Load("models.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := declared.Sweep(name, changes...)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	planned, err := sweep.New(t.Context(), s, sweep.Options{Out: out, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var failed *sweep.Failed
	if _, err := planned.Run(t.Context()); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return out
}

// weights declares a sweep of two weights over two seeds.
const weights = `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl" }]
train = { epochs = 2, batch = 20 }
[sweep.weights]
model = "small"
seeds = [1, 2]
set.loss.1.weight = [0.001, 10.0]
`

// sweepPage returns the page of a sweep, and its text.
func sweepPage(t *testing.T, path string) (*page.Sweep, string) {
	t.Helper()
	s, err := page.ReadSweep(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	return s, text.String()
}

func TestASweepSaysWhatItIs(t *testing.T) {
	s, text := sweepPage(t, ran(t, weights, "weights"))
	contains(t, factText(s.Facts), "2 settings, each with 2 seeds, 4 trials in all", "training: adam, mini-batches of 20, 2 epochs", "objective: a weighted sum of mse, kl",
		"varied: weight of the kl term (loss.1.weight)", "measured: all trials, on 60 images of bars (fitted to these images, none are held out)")
	contains(t, s.Warning, "images on which they were trained")
	if len(s.Differences) != 1 || len(s.Differences[0].Rows) != 1 || s.OneSeed != "" {
		t.Fatalf("differences %+v, %q", s.Differences, s.OneSeed)
	}
	contains(t, s.Differences[0].Words, "Mean differences from small (loss.1.weight = 0.001), ")
	row, results := s.Differences[0].Rows[0], s.Trials
	want, at := 0.0, slices.IndexFunc(s.Measures, func(m page.MeasureColumn) bool { return m.Name == "mse" })
	for i := range 2 {
		want += (float64(*results[2+i].Numbers[at]) - float64(*results[i].Numbers[at])) / 2
	}
	if row.Values[0] != "10" || row.Pairs != 2 || row.Paired[0] == nil || math.Abs(row.Paired[0].Mean-want) > 1e-12 {
		t.Errorf("the difference is %+v, want %g", row, want)
	}
	contains(t, text, ">"+strings.ReplaceAll(row.Paired[0].Finding(), "+", "&#43;")+"<br><small>"+row.Paired[0].Interval()+"</small>")
	for _, m := range s.Measures {
		if m.Name == "parts_found" && m.Of != 16 {
			t.Errorf("bars have %d parts, want 16", m.Of)
		}
	}
}

func TestSettingsOnOtherImagesHaveTheirOwnTable(t *testing.T) {
	s, _ := sweepPage(t, ran(t, weights+"set.dataset.seed = [1, 2]", "weights"))
	for i, one := range s.Settings { // the seed of the data set varies fastest
		if one.Images != i%2 {
			t.Errorf("setting %v is compared with settings on images %d", one.Values, one.Images)
		}
	}
	if len(s.Differences) != 2 {
		t.Fatalf("%d tables, want 2", len(s.Differences))
	}
	for i, seed := range []string{"1", "2"} {
		contains(t, s.Differences[i].Words, "dataset.seed = "+seed)
		if rows := s.Differences[i].Rows; len(rows) != 1 || !slices.Contains(rows[0].Values, seed) {
			t.Errorf("the table of data set %s: %+v", seed, rows)
		}
	}
	contains(t, s.Intervals, "One in twenty")
}

func TestDifferencesOfValidationValuesSayThatSelectedSettingsLookTooGood(t *testing.T) {
	_, text := sweepPage(t, ran(t, weights+"set.dataset.validation = [0.2]\nselect = \"mse\"", "weights"))
	contains(t, text, "Measured on all images, because there are no test images: those of the training and of the selection are among them.", "The values are of the validation split, by which settings were selected: there the selected ones look too good")
	if strings.Contains(text, "One in twenty") {
		t.Error("the page says that one in twenty intervals misses")
	}
}

func TestThePageOfAChangedSweepHasItsCommandLine(t *testing.T) {
	change, err := config.ParseSet(`loss.1={ kind = "kl" }`)
	if err != nil {
		t.Fatal(err)
	}
	seeds, err := config.Seeds([]uint64{7})
	if err != nil {
		t.Fatal(err)
	}
	s, text := sweepPage(t, ran(t, weights, "weights", change, config.Passes(1), seeds))
	if want := `tessera sweep weights --set 'loss.1={ kind = "kl" }' --epochs 1 --seeds 7`; s.Commands[0].Line != want {
		t.Errorf("got %q, want %q", s.Commands[0].Line, want)
	}
	contains(t, text, "One seed shows no difference between settings: give the sweep several seeds.")
	if strings.Contains(text, "<h2>Differences between settings") {
		t.Error("the page of one seed has a table of differences")
	}
}

func TestThePageOfATrialHasItsSettingsAsTitle(t *testing.T) {
	path := ran(t, weights, "weights", config.Passes(1))
	s, err := sweep.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"small: weight 0.001, seed 1", "small: weight 0.001, seed 2", "small: weight 10, seed 1", "small: weight 10, seed 2"} {
		contains(t, rendered(t, sweep.TrialPath(path, s.Trials[i].Trial)), "<title>"+want+" - Tessera</title>", "<h1>"+want+"</h1>")
	}
}

func TestFailedTrialsAreNamedByTheirSettingsAndSeeds(t *testing.T) {
	s, text := sweepPage(t, ran(t, weights+"set.optimizer.learning_rate = [0.01, 1e30]", "weights"))
	if len(s.Failed) != 4 {
		t.Fatalf("failed trials: %+v", s.Failed)
	}
	contains(t, text, "<li>weight 0.001, learning_rate 1e&#43;30, seed 1 (<code>"+s.Failed[0].Trial+"</code>): training diverged at step ", "4 of 8 trials, on ")
}

// The third common seed of the settings is simulated. Under this seed the metrics are not applicable.
func TestADifferenceOfFewerSeedsSaysHowMany(t *testing.T) {
	path := ran(t, weights, "weights", config.Passes(1))
	s, err := page.ReadSweep(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	s.Differences[0].Rows[0].Pairs++
	var text bytes.Buffer
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	contains(t, text.String(), "<td>3</td>", " (2 seeds)</small>")
}
