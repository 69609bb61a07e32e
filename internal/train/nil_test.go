package train

import (
	"context"
	"os"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/data/augment"
	"tessera/internal/expect"
	"tessera/layers"
	"tessera/optim"
)

func TestNoModelIsAnError(t *testing.T) {
	for want, spec := range map[string]*config.Model{
		"the model is nil":            nil,
		`model "" is not checked`:     {},
		`model "own" is not checked`:  {Name: "own", Kind: config.Autoencoder},
		`model "bare" is not checked`: {Name: "bare", Dataset: config.Dataset{Source: &data.Bars{Count: 10}}},
	} {
		expect.Error(t, expect.Err(Run(context.Background(), spec, Options{Out: t.TempDir()})), want)
	}
}

// Go code may remove a part of a model after it was checked. Training then returns an error and creates no folder.
func TestAModelThatLostAPartIsRefused(t *testing.T) {
	var noDense *layers.Dense
	var noAdam *optim.Adam
	for name, change := range map[string]func(m *config.Model){
		"no loss":            func(m *config.Model) { m.Losses = []config.Loss{{}} },
		"no weight":          func(m *config.Model) { m.Losses[0].Weight = nil },
		"a loss on nothing":  func(m *config.Model) { m.Losses[0].On = "" },
		"no constraint":      func(m *config.Model) { m.Constraints = []config.Constraint{{}} },
		"no layer":           func(m *config.Model) { m.Decoder[0] = config.Layer{Kind: "dense"} },
		"a nil layer":        func(m *config.Model) { m.Encoder[0].Layer = noDense },
		"a nil layer inside": func(m *config.Model) { m.Encoder[0].Layer = &layers.Residual{Layers: []layers.Layer{noDense}} },
		"a head of no layer": func(m *config.Model) {
			m.Heads = map[string]config.Head{"h": {From: config.Names{"code"}, Layers: []config.Layer{{}}}}
		},
		"no augmentation":      func(m *config.Model) { m.Views = []config.View{{Augment: []augment.Augmentation{nil}}} },
		"no optimizer":         func(m *config.Model) { m.Optimizer.Optimizer = nil },
		"a nil optimizer":      func(m *config.Model) { m.Optimizer.Optimizer = noAdam },
		"no data set":          func(m *config.Model) { m.Dataset.Source = nil },
		"no encoder":           func(m *config.Model) { m.Encoder = nil },
		"a batch of no images": func(m *config.Model) { m.Train.Batch = 0 },
	} {
		m := model(t, everything)
		change(m)
		run := place(t)
		_, err := Run(context.Background(), m, Options{Out: run})
		expect.Error(t, err, `model "everything"`, name)
		expect.AnyError(t, expect.Err(os.Stat(run)), name, "a folder was made")
	}
}

func TestNoContextIsAnErrorBeforeAnythingIsWritten(t *testing.T) {
	run := place(t)
	var none context.Context
	expect.Error(t, expect.Err(Run(none, model(t, everything), Options{Out: run})), "no context", "run")
	expect.AnyError(t, expect.Err(os.Stat(run)), "a folder was made")
	expect.Error(t, expect.Err(Resume(none, run, Options{})), "no context", "resume")
}
