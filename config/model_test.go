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

func TestSettingsAreTheValuesThatAreNotDefaults(t *testing.T) {
	text := func(m *Model) string {
		var lines []string
		for _, s := range m.Settings() {
			lines = append(lines, s.Key+" = "+s.Value)
		}
		return strings.Join(lines, "\n")
	}
	f := load(t, settled)
	want := map[string]string{
		"m": `dataset.name = "bars"
decoder.0.kind = "dense"
decoder.0.units = 64
encoder.0.kind = "dense"
encoder.0.units = 4
encoder.1.kind = "leaky_relu"
hook.average.kind = "average"
kind = "autoencoder"
loss.0.kind = "mse"
loss.1.kind = "l1"
loss.1.weight = 0.01
optimizer.kind = "adam"
optimizer.schedule.kind = "constant"
train.batch = 7`,
	}
	for name, want := range want {
		if got := text(model(t, f, name)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	for _, name := range f.Names() {
		m := model(t, f, name)
		again := model(t, load(t, string(m.Text())), name)
		if text(again) != text(m) {
			t.Errorf("%s: got\n%s\nread again\n%s", name, text(m), text(again))
		}
		for _, d := range Differences(m, model(t, f, "m")) {
			if d.Key != "name" && d.Key != "about" && text(m) == text(model(t, f, "m")) {
				t.Errorf("%s differs, but the settings are equal", d.Key)
			}
		}
	}
}

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
