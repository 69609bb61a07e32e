package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
)

// ran runs the sweep of a text with the given changes, and returns its folder.
func ran(t *testing.T, text, name string, changes ...config.Set) string {
	t.Helper()
	declared, err := config.Load("models.toml", []byte(text))
	fatal.If(t, err)
	s, err := declared.Sweep(name, changes...)
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), name)
	planned, err := sweep.New(t.Context(), s, sweep.Options{Out: out, Jobs: 1})
	fatal.If(t, err)
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
	fatal.If(t, err)
	var text bytes.Buffer
	fatal.If(t, s.Write(&text))
	return s, text.String()
}

func TestASweepSaysWhatItIs(t *testing.T) {
	s, text := sweepPage(t, ran(t, weights, "weights"))
	contains(t, factText(s.Facts), "2 settings, each with 2 seeds, 4 trials in all", "training: adam, mini-batches of 20, 2 epochs", "objective: a weighted sum of mse, kl",
		"varied: weight of the kl term (loss.1.weight)", "measured: all trials, on 60 images of bars (fitted to these samples, none are held out)")
	contains(t, s.Warning, "images on which they were trained")
	if s.Compared == nil || s.OneSeed != "" {
		t.Fatalf("differences %+v, %q", s.Compared, s.OneSeed)
	}
	contains(t, text, ">A</th><td>small (loss.1.weight = 0.001), 2 seeds</td>", ">B</th><td>small (loss.1.weight = 10), 2 seeds</td>", "Differences are from A, ")
	at := slices.IndexFunc(s.Measures, func(m page.MeasureColumn) bool { return m.Name == "mse" })
	row, want := s.Compared.Metrics[at], 0.0
	for i := range 2 {
		want += (float64(*s.Trials[2+i].Numbers[at]) - float64(*s.Trials[i].Numbers[at])) / 2
	}
	if p := row.Cells[1].Paired; row.Name != "mse" || p == nil || p.Pairs != 2 || math.Abs(p.Mean-want) > 1e-12 {
		t.Errorf("the difference is %+v, want %g", row, want)
	}
	contains(t, text, ">"+row.Cells[1].Paired.String()+"</td>")
	for _, m := range s.Measures {
		if m.Name == "parts_found" && m.Of != 16 {
			t.Errorf("bars have %d parts, want 16", m.Of)
		}
	}
}

func TestSettingsOnOtherImagesHaveTheirOwnReference(t *testing.T) {
	path := ran(t, weights+"set.dataset.seed = [1, 2]", "weights")
	s, text := sweepPage(t, path)
	for i, one := range s.Settings { // the seed of the data set varies fastest
		expect.Equal(t, one.Images, i%2, "setting", one.Values, "is compared with settings on images")
		expect.Equal(t, s.Compared.Models[i].Against, []string{"", "", "A", "B"}[i], "setting", one.Values, "is compared with")
	}
	contains(t, text, "those on other samples from the first of their samples")
	other, err := page.ReadSweep(t.Context(), path, page.Options{Reference: "D"})
	if err != nil || other.Compared.Models[1].Against != "D" || other.Compared.Models[2].Against != "A" {
		t.Errorf("got %+v, %v", other, err)
	}
}

func TestDifferencesOfValidationValuesSayThatSelectedSettingsLookTooGood(t *testing.T) {
	_, text := sweepPage(t, ran(t, weights+"set.dataset.validation = [0.2]\nselect = \"mse\"", "weights"))
	contains(t, text, "Measured on all images, because there are no test images: those of the training and of the selection are among them.", "The values are of the validation split, by which settings were selected: there the selected ones look too good")
}

func TestThePageOfAChangedSweepHasItsCommandLine(t *testing.T) {
	change, err := config.ParseSet(`loss.1={ kind = "kl" }`)
	fatal.If(t, err)
	seeds, err := config.Seeds([]uint64{7})
	fatal.If(t, err)
	s, text := sweepPage(t, ran(t, weights, "weights", change, config.Passes(1), seeds))
	expect.Equal(t, s.Commands[0].Line, `tessera sweep weights --set 'loss.1={ kind = "kl" }' --epochs 1 --seeds 7`)
	contains(t, text, "One seed shows no difference between settings: give the sweep several seeds.")
	if strings.Contains(text, "<h2>Differences between settings") {
		t.Error("the page of one seed has a table of differences")
	}
}

func TestThePageOfATrialHasItsSettingsAsTitle(t *testing.T) {
	path := ran(t, weights, "weights", config.Passes(1))
	s, err := sweep.Read(path)
	fatal.If(t, err)
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

// The scripts go through lists of the data: a list that is null stops them. Only numbers in lists may be missing.
func TestListsOfPagesAreNeverNull(t *testing.T) {
	_, models := sweepPage(t, ran(t, `
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 1, batch = 20 }
[model.large]
extends = "small"
encoder = [{ kind = "dense", units = 6, activation = "sigmoid" }]
[sweep.models]
model = ["small", "large"]
`, "models"))
	_, failed := sweepPage(t, ran(t, strings.Replace(weights, "[0.001, 10.0]", "[1e30]", 1), "weights"))
	for name, text := range map[string]string{"models": models, "failed": failed, "run": rendered(t, trained(t, 0))} {
		var all any
		_, rest, _ := strings.Cut(text, `id="data">`)
		rest, _, _ = strings.Cut(rest, "</script>")
		fatal.If(t, json.Unmarshal([]byte(rest), &all))
		var check func(path string, v any)
		check = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for key, of := range v {
					if of == nil {
						t.Errorf("%s: %s.%s is null", name, path, key)
					}
					check(path+"."+key, of)
				}
			case []any:
				for _, of := range v {
					check(path+"[]", of)
				}
			}
		}
		check("", all)
	}
}
