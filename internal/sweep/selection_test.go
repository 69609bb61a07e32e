package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/train"
	"tessera/metrics"
)

// selecting changes declared to a sweep that holds out validation images and selects settings on them.
var selecting = strings.NewReplacer(
	`count = 100 }`, `count = 100, validation = 0.3 }`,
	"[sweep.s]", "[sweep.s]\nselect = \"mse\"",
).Replace(declared)

func TestTheSettingWithTheLeastValidationErrorIsMeasuredOnTheTestImages(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	r := run(t, selecting, Options{Out: out})
	if r.Split != "validation" || len(r.Settings) != 2 || len(r.Selected) != 1 {
		t.Fatalf("measured on %q, %d settings, %d selected", r.Split, len(r.Settings), len(r.Selected))
	}
	best := slices.MinFunc(r.Settings, func(a, b Setting) int {
		x, _ := a.Mean.Number("mse")
		y, _ := b.Mean.Number("mse")
		return int(math.Copysign(1, x-y))
	})
	chosen := r.Selected[0]
	expect.Slice(t, chosen.Trials, best.Trials, "selected")
	for _, row := range r.Trials {
		expect.Equal(t, row.Metrics.Split, "validation", "trial", row.Trial, "measured on")
		expect.Equal(t, row.Metrics.Images, 30, "trial", row.Trial, "measured on")
		text, err := os.ReadFile(filepath.Join(TrialPath(out, row.Trial), testFile))
		expect.Equal(t, slices.Contains(best.Trials, row.Trial), err == nil, "trial", row.Trial, "selected", testFile, err)
		var kept keptMetrics
		if err == nil && (json.Unmarshal(text, &kept) != nil || kept.Measured.Split != "all" || kept.Measured.Images != 100) {
			t.Errorf("trial %s: %s holds %s", row.Trial, testFile, text)
		}
	}
	if table, err := os.ReadFile(filepath.Join(out, SelectedFile)); err != nil || !strings.HasPrefix(string(table), "model,loss.1.target,seeds,validation_mse,mse,mse_deviation") {
		t.Errorf("%s: %v\n%s", SelectedFile, err, table)
	}
	read, err := Read(out)
	if err != nil || len(read.Select) != 1 || read.Select[0] != (config.Criterion{Metric: "mse"}) || len(read.Selected) != 1 {
		t.Errorf("read back: %v, %+v", err, read)
	}
}

func TestSelectingByAMetricThatNoTrialHasIsAnError(t *testing.T) {
	// Linear codes leave [0,1], so that the KL divergence of their means is not applicable.
	by := strings.NewReplacer(`select = "mse"`, `select = "kl"`, `activation = "sigmoid"`, `activation = "linear"`, `kind = "kl", weight = 0.001, target = 0.2`,
		`kind = "l1", on = "code"`, `loss.1.target = [0.1, 0.3]`, `loss.1.weight = [0.0, 1e-6]`).Replace(selecting)
	_, err := open(t, spec(t, by, "s", "train.epochs=1"), Options{Out: filepath.Join(t.TempDir(), "s")}).Run(context.Background())
	expect.Error(t, err, `by "kl"`)
}

func TestASelectionInterruptedAnywhereEndsInTheSameBytes(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	counter := &dying{}
	run(t, selecting, Options{Out: whole, Jobs: 1, Disk: counter}, "train.epochs=1")
	want := files(t, whole)
	step := 1
	if testing.Short() {
		step = 4
	}
	for at := counter.count - 12; at <= counter.count; at += step {
		out := filepath.Join(t.TempDir(), "s")
		disk := &dying{at: at, err: errDead}
		if _, err := open(t, spec(t, selecting, "s", "train.epochs=1"), Options{Out: out, Jobs: 1, Disk: disk}).Run(context.Background()); err == nil {
			t.Fatalf("the disk died at operation %d of %d, and the sweep did not end", at, counter.count)
		}
		run(t, selecting, Options{Out: out, Jobs: 2}, "train.epochs=1")
		same(t, "died", files(t, out), want)
	}
}

// The context ends when the last trial has finished, before the selected settings are measured on the test images. The
// error is that of an interruption, as for a trial.
func TestASelectionInterruptedByItsContextIsInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := open(t, spec(t, selecting, "s", "train.epochs=1"), Options{Out: out, Jobs: 1, Report: func(e Event) {
		if e.Done == e.Total {
			cancel()
		}
	}}).Run(ctx)
	if halted, ok := errors.AsType[*Interrupted](err); !errors.Is(err, train.ErrInterrupted) || !ok || halted.Path != out {
		t.Errorf("got %v", err)
	}
	if r := run(t, selecting, Options{Out: out}, "train.epochs=1"); len(r.Selected) != 1 || len(r.Selected[0].Seeds) != 2 {
		t.Errorf("selected after it was resumed: %+v", r.Selected)
	}
}

func TestATableOfSelectedSettingsGoesWithItsSelection(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, selecting, Options{Out: out})
	r := run(t, strings.Replace(selecting, `select = "mse"`, `split = "test"`, 1), Options{Out: out})
	if r.Split != "all" || r.Selected != nil {
		t.Errorf("measured on %s, selected %v", r.Split, r.Selected)
	}
	expect.AnyError(t, expect.Err(os.Stat(filepath.Join(out, SelectedFile))), SelectedFile+" is still there")
}

func TestAFrontHoldsWhatNoOtherSettingDominates(t *testing.T) {
	setting := func(mse, hoyer float64, trials, seeds int) Setting {
		s := Setting{Trials: make([]string, trials), Seeds: make([]uint64, seeds)}
		s.Mean.Set("mse", mse)
		s.Mean.Set("hoyer", hoyer)
		return s
	}
	all := []Setting{
		setting(0.2, 0.5, 1, 1), setting(0.1, 0.4, 1, 1), setting(0.2, 0.4, 1, 1), setting(0.3, 0.9, 1, 1), setting(0.01, 0.99, 2, 1),
		setting(0.1, 0.4, 1, 1),
	}
	got := front(all, []config.Criterion{{Metric: "mse"}, {Metric: "hoyer", Largest: true}})
	if want := []Setting{all[0], all[1], all[3], all[5]}; !equalMeans(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := front(all, []config.Criterion{{Metric: "mse"}}); !equalMeans(got, []Setting{all[1], all[5]}) {
		t.Errorf("by mse: %v", got)
	}
	expect.Equal(t, len(front(all, []config.Criterion{{Metric: "accuracy", Largest: true}})), 0, "by a metric that no setting has")
}

func TestASettingWhoseTrialLacksACriterionIsNotSelected(t *testing.T) {
	s := &Sweep{criteria: []config.Criterion{{Metric: "coherence"}}}
	trial := func(id, model string, seed uint64, value metrics.Value) {
		value.Name = "coherence"
		m := &config.Model{Name: model, Train: config.Train{Seed: seed}}
		s.Trials = append(s.Trials, &Trial{Trial: config.Trial{Model: m}, ID: id, tested: &data.Set{}, measured: &metrics.Result{Values: metrics.Values{value}}})
	}
	trial("a", "dead", 1, metrics.Number(0.1))
	trial("b", "dead", 2, metrics.NotApplicable("fewer than two atoms are not zero"))
	trial("c", "alive", 1, metrics.Number(0.2))
	trial("d", "alive", 2, metrics.Number(0.3))
	if got := s.results().Selected; len(got) != 1 || got[0].Model != "alive" {
		t.Errorf("selected %+v, want the setting whose trials have the criterion", got)
	}
	settings := s.results().Settings
	for i, want := range []float64{math.NaN(), 0.25} {
		mean, ok := settings[i].Mean.Number("coherence")
		if expect.Equal(t, ok, want == want, settings[i].Model, "is the mean over all its seeds"); ok {
			expect.Equal(t, mean, want)
		}
	}
	s.Trials = s.Trials[:2]
	expect.Equal(t, unmeasured(s.results().Settings, s.criteria), "coherence", "without a setting that can be selected")
}

func equalMeans(a, b []Setting) bool {
	return slices.EqualFunc(a, b, func(x, y Setting) bool { return slices.Equal(x.Mean, y.Mean) })
}
