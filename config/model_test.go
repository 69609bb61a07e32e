package config

import (
	"strings"
	"testing"

	"tessera/layers"
	"tessera/losses"
)

const settled = `
[model.m]
about = "a line"
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }, { kind = "leaky_relu", slope = 0.1 }]
loss = [{ kind = "mse" }, { kind = "l1", weight = 0.01, on = "code" }]
hook.average = {}
train = { epochs = 100, batch = 7 }
[model.n]
extends = "m"
decoder = []
head.class.layers = [{ kind = "dense", init = "he_normal" }]
loss = [{ kind = "cross_entropy", on = "class" }]
dataset = { name = "fashion-mnist", validation = 0.5 }
[model.k]
kind = "nmf"
components = 3
`

func TestAModelThatWasChangedIsNotVerified(t *testing.T) {
	for want, change := range map[string]func(m *Model){
		"":                  func(*Model) {},
		"train.epochs: got": func(m *Model) { m.Train.Epochs++ },
		`hook.average.decay: got nothing, want 0.999`: func(m *Model) { delete(m.Hooks, "average") },
		"is not registered":                           func(m *Model) { m.Hooks["zz"] = between{1} },
		`name: got "a b c", want "m"`:                 func(m *Model) { m.Name = "a b c" },
		"encoder[0]: got a nil":                       func(m *Model) { m.Encoder[0].Layer = (*layers.Dense)(nil) },
		"is not checked: make it":                     func(m *Model) { *m = Model{} },
		"loss.1.weight: got 2.0, want 0.01":           func(m *Model) { m.Losses[1].Weight = &losses.Constant{Value: 2} },
	} {
		m := model(t, load(t, settled), "m")
		change(m)
		if err := m.Verify(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
