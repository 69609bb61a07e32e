package tessera_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
)

// creditModel is a small classifier of credit.
func creditModel(t *testing.T, more string) *config.Model {
	t.Helper()
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset   = { name = "credit", count = 40000, test = 30000, validation = 0.5 }
encoder   = [{ kind = "dense", units = 8, activation = "relu" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }`+more+`]
optimizer = { kind = "adam", learning_rate = 0.01 }
train     = { epochs = 2, batch = 100 }
`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Thresholds that are fitted to validation samples bring the gaps of separation below 0.02 on test samples; predictions and metrics decide by them, also
// after the run is opened again, and equal samples get equal decisions.
func TestThresholdsSeparateOnHeldOutSamples(t *testing.T) {
	r, err := tessera.Train(t.Context(), creditModel(t, ""), tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done, err := r.FitThresholds(t.Context(), tessera.ThresholdOptions{Positive: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	test := done.On[1]
	for _, name := range []string{"false_positive_rate_gap", "false_negative_rate_gap"} {
		before, _ := test.Before.Number(name)
		after, ok := test.After.Number(name)
		t.Logf("%s: %.4f, then %.4f", name, before, after)
		if !(before > 0.1 && after < 0.02 && ok) || test.Split != data.TestSplit {
			t.Errorf("%s: %v before, %v after", name, before, after)
		}
	}
	if got := r.PostHoc(); got != "class: thresholds for separation by group" {
		t.Errorf("got %q", got)
	}
	opened, err := tessera.Open(r.Path, tessera.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	sample, err := r.Sample(t.Context(), data.TestSplit, "group")
	if err != nil {
		t.Fatal(err)
	}
	sample.Images = sample.Images.First(2000)
	rows, groups := sample.Images.Float32(), sample.Images.All()["group"]
	first, err := r.PredictFrom("", map[string][]float32{"images": rows, "group": groups})
	if err != nil {
		t.Fatal(err)
	}
	second, err := opened.PredictFrom("", map[string][]float32{"images": rows, "group": groups})
	if err != nil || !slices.Equal(first.Labels, second.Labels) {
		t.Errorf("%v, or other decisions", err)
	}
	measured, err := opened.EvaluateSample(t.Context(), sample, metrics.Selection{{Metric: &metrics.Fairness{Group: "group", Positive: 1, Resamples: 5, Least: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	right, most := 0, 0
	for i, label := range sample.Images.Labels() {
		if first.Labels[i] == label {
			right++
		}
		if first.Probabilities[2*i+1] > first.Probabilities[2*i] == (first.Labels[i] == 1) {
			most++
		}
	}
	if got, _ := measured.Number("decision_accuracy"); math.Abs(got-float64(right)/2000) > 1e-9 || most == 2000 {
		t.Errorf("decision_accuracy %v, want %v; %d decisions are those of the probabilities", got, float64(right)/2000, most)
	}
	for want, columns := range map[string]map[string][]float32{
		`decide by the column "group" (got 0 values of it, want 2000)`: {"images": rows},
		`sample 0: the group 5 of the column "group" has no threshold`: {"images": rows, "group": slices.Repeat([]float32{5}, 2000)},
	} {
		if _, err := r.PredictFrom("", columns); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := opened.Calibrate(t.Context(), "", posthoc.Isotonic); err != nil || opened.Thresholds("class") != nil {
		t.Errorf("%v, or the thresholds are those of other probabilities", err)
	}
	if _, err := opened.FitThresholds(t.Context(), tessera.ThresholdOptions{Positive: 1}); err == nil || !strings.Contains(err.Error(), "isotonic calibration") {
		t.Errorf("got %v", err)
	}
	if err := opened.RemoveThresholds(); err != nil || opened.PostHoc() != "class: isotonic" {
		t.Errorf("%v, %q", err, opened.PostHoc())
	}
}
