package evaluation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

func TestHeldOutImagesAreMeasuredFirst(t *testing.T) {
	onTest, held := data.Validation{Test: true}, data.Validation{Fraction: 0.1}
	none := "fitted to these samples, none are held out"
	for _, c := range []struct {
		name string
		set  data.Source
		sel  data.Selection
		stop bool
		want evaluation.Plan
	}{
		{"test images", data.FashionMNIST(), data.Selection{Fit: "train", Validation: held}, false, evaluation.Plan{First: "test", Fitted: "train"}},
		{"test images that validate", data.FashionMNIST(), data.Selection{Fit: "train", Validation: onTest}, false, evaluation.Plan{First: "test", Fitted: "train"}},
		{"that choose the epoch", data.FashionMNIST(), data.Selection{Fit: "train", Validation: onTest}, true,
			evaluation.Plan{First: "test", Fitted: "train", Note: "they also chose the epoch"}},
		{"that are fitted", data.FashionMNIST(), data.Selection{Fit: "test", Validation: onTest}, false, evaluation.Plan{First: "test", Note: none}},
		{"of which a few are fitted", data.FashionMNIST(), data.Selection{Fit: "test", Limit: 9}, false, evaluation.Plan{First: "train", Note: none}},
		{"of which some are held out", data.FashionMNIST(), data.Selection{Fit: "test", Validation: held}, false, evaluation.Plan{First: "validation", Fitted: "train"}},
		{"no test images", &data.Bars{}, data.Selection{Fit: "train", Validation: held}, false, evaluation.Plan{First: "validation", Fitted: "train"}},
		{"no test images, held-out ones that choose the epoch", &data.Bars{}, data.Selection{Fit: "train", Validation: held}, true,
			evaluation.Plan{First: "validation", Fitted: "train", Note: "they also chose the epoch"}},
		{"none held out", &data.Bars{}, data.Selection{Fit: "train"}, false, evaluation.Plan{First: "train", Note: none}},
	} {
		m := &config.Model{Dataset: config.Dataset{Source: c.set, Selection: c.sel}, Hooks: map[string]hooks.Hook{}, Decoder: make([]config.Layer, 1)}
		if c.stop {
			m.Hooks["early_stopping"] = &hooks.EarlyStopping{Patience: 5}
		}
		expect.Equal(t, evaluation.PlanOf(m), c.want, c.name)
		if got := evaluation.ReportOf(m, &metrics.Result{Split: string(c.want.First)}); got.Note != c.want.Note && c.want.Fitted != "" {
			t.Errorf("%s: the report notes %q, want %q", c.name, got.Note, c.want.Note)
		}
	}
}

// Without a decoder and without a labelled head there is no validation error: early stopping uses the training loss.
func TestValidationImagesThatSelectNothingAreNotSaidTo(t *testing.T) {
	m := &config.Model{Dataset: config.Dataset{Source: &data.Bars{}, Selection: data.Selection{Fit: "train", Validation: data.Validation{Fraction: 0.1}}},
		Hooks: map[string]hooks.Hook{"early_stopping": &hooks.EarlyStopping{Patience: 5}}}
	expect.Equal(t, evaluation.PlanOf(m), (evaluation.Plan{First: "validation", Fitted: "train"}))
	if got := evaluation.ReportOf(m, &metrics.Result{Split: "validation"}); !got.HeldOut || got.Note != "" {
		t.Errorf("got held out %v, %q", got.HeldOut, got.Note)
	}
	warned := strings.Join(m.Warnings(), "\n")
	expect.Contains(t, warned, "early stopping selects an epoch by the training loss")
}

// Only a tenth of the test images is held out, because the model is fitted to the others.
func TestTheTestImagesOfAModelFittedToThemAreNotHeldOut(t *testing.T) {
	m := &config.Model{Dataset: config.Dataset{Source: data.FashionMNIST(), Selection: data.Selection{Fit: "test", Validation: data.Validation{Fraction: 0.1}}}}
	r := evaluation.ReportOf(m, &metrics.Result{Split: "test"})
	if want := "the fitted samples among them"; r.HeldOut || r.Note != want {
		t.Errorf("got held out %v, %q, want %q", r.HeldOut, r.Note, want)
	}
}

func TestFittedImagesAreEvenlySpaced(t *testing.T) {
	images, err := data.NewFloats([]int{1, 1}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, nil)
	fatal.If(t, err)
	got := evaluation.Spread(images, 4).Float32()
	for i, want := range []float32{0, 2, 5, 7} {
		expect.Equal(t, got[i], want, got)
	}
	expect.Equal(t, evaluation.Spread(images, 10), images, "all images were copied")
}

func TestAReportIsAResultForOthers(t *testing.T) {
	report := &evaluation.Report{Result: &metrics.Result{Model: "m", Split: "test", Images: 3, Values: metrics.Values{{Name: "mse", Number: 0.5}}},
		HeldOut: true, Note: "of \x00 and <b>", Fitted: &metrics.Result{Model: "m", Split: "train", Images: 4}, FittedImages: 9}
	text, err := json.Marshal(report)
	fatal.If(t, err)
	var back metrics.Result
	if err := json.Unmarshal(text, &back); err != nil || back.Images != 3 || len(back.Values) != 1 || back.Split != "test" {
		t.Errorf("%s was read as %+v, %v", text, back, err)
	}
}

// The quick metrics of samples are measured on fitted ones too, those of the model alone once.
func TestFittedImagesHaveTheMetricsOfSamples(t *testing.T) {
	chosen, err := metrics.Select("coherence", "rmse", "accuracy", "negative_weights", "mse", "parts_found", "bic", "loss", "knn_accuracy")
	fatal.If(t, err)
	names := func(s metrics.Selection) []string {
		return lists.Map(s, func(c metrics.Choice) string { return c.Metric.Describe().Measures[0].Name })
	}
	expect.Slice(t, names(evaluation.OnFitted(nil, chosen)), []string{"rmse", "accuracy", "mse", "bic", "loss"}, "on fitted images")
	expect.Slice(t, names(evaluation.OnHeldOut(chosen)), slices.DeleteFunc(names(chosen), func(name string) bool { return name == "bic" }), "on held-out images")
	alone, err := metrics.Select("bic")
	fatal.If(t, err)
	expect.Slice(t, names(evaluation.OnHeldOut(alone)), []string{"bic"}, "criteria alone")
}
