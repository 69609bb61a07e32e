package train

import (
	"context"
	"os"
	"strings"
	"testing"

	"tessera/config"
	"tessera/constraints"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

func TestNoModelIsAnError(t *testing.T) {
	for want, spec := range map[string]*config.Model{
		"the model is nil":            nil,
		`model "" has no data set`:    {},
		`model "own" has no data set`: {Name: "own", Kind: config.Autoencoder},
		`model "bare" has no encoder`: {Name: "bare", Dataset: config.Dataset{Source: &data.Bars{Count: 10}}},
	} {
		if _, err := Run(context.Background(), spec, Options{Out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A model that nobody has checked names the place that holds nothing, and no folder is made.
func TestAnUndeclaredModelNamesWhatIsMissing(t *testing.T) {
	var noDense *layers.Dense
	var noAdam *optim.Adam
	for want, change := range map[string]func(m *config.Model){
		"loss[0]: there is no loss (got nil)":                     func(m *config.Model) { m.Losses = []config.Loss{{}} },
		"loss[0].weight: there is no weight (got nil)":            func(m *config.Model) { m.Losses[0].Weight = nil },
		`loss[0]: missing key "on"`:                               func(m *config.Model) { m.Losses[0].On = "" },
		"constraint[0]: there is no constraint (got nil)":         func(m *config.Model) { m.Constraints = []config.Constraint{{}} },
		`constraint[0]: missing key "on"`:                         func(m *config.Model) { m.Constraints = []config.Constraint{{Constraint: &constraints.NonNeg{}}} },
		"encoder[0]: there is no layer (got a nil *layers.Dense)": func(m *config.Model) { m.Encoder[0].Layer = noDense },
		"decoder[0]: there is no layer (got nil)":                 func(m *config.Model) { m.Decoder[0] = config.Layer{Kind: "dense"} },
		"encoder[0].layers[0]: there is no layer (got a nil":      func(m *config.Model) { m.Encoder[0].Layer = &layers.Residual{Layers: []layers.Layer{noDense}} },
		"head.h.layers[0]: there is no layer (got nil)": func(m *config.Model) {
			m.Heads = map[string]config.Head{"h": {From: "code", Layers: []config.Layer{{}}}}
		},
		"view[0].augment[0]: there is no augmentation (got nil)": func(m *config.Model) {
			m.Views = make([]config.View, 1)
			m.Views[0].Augment = append(m.Views[0].Augment, nil)
		},
		"optimizer: there is no optimizer (got a nil *optim.Adam)": func(m *config.Model) { m.Optimizer.Optimizer = noAdam },
	} {
		m := model(t, everything)
		m.Losses = []config.Loss{{Kind: "mse", On: losses.Output, Weight: &losses.Constant{Value: 1}, Loss: &losses.MSE{}}}
		change(m)
		run := place(t)
		_, err := Run(context.Background(), m, Options{Out: run})
		if err == nil || !strings.Contains(err.Error(), `model "everything": `+want) {
			t.Errorf("got %v\nwant %q", err, want)
		}
		if _, err := os.Stat(run); err == nil {
			t.Errorf("%s: a folder was made", want)
		}
	}
}

func TestNoContextIsAnErrorBeforeAnythingIsWritten(t *testing.T) {
	run := place(t)
	var none context.Context
	if _, err := Run(none, model(t, everything), Options{Out: run}); err == nil || !strings.Contains(err.Error(), "no context") {
		t.Errorf("run: got %v", err)
	}
	if _, err := os.Stat(run); err == nil {
		t.Error("a folder was made")
	}
	if _, err := Resume(none, run, Options{}); err == nil || !strings.Contains(err.Error(), "no context") {
		t.Errorf("resume: got %v", err)
	}
}
