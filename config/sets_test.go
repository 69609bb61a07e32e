package config

import (
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestAModelKnowsTheKeysThatItsDeclarationSets(t *testing.T) {
	f := load(t, `
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }]
train = { epochs = 3 }
[model.n]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }]
[model.n.train]
batch = 7
`)
	for _, c := range []struct {
		model, key string
		want       bool
	}{
		{"m", "train.epochs", true}, {"m", "train.batch", false}, {"m", "dataset", true}, {"m", "about", false}, {"m", "train.seed", false},
		{"n", "train.epochs", false}, {"n", "train.batch", true},
	} {
		m, err := f.Model(c.model)
		fatal.If(t, err)
		expect.Equal(t, m.Sets(c.key), c.want, c.model, "sets", c.key)
	}
	if (&Model{}).Sets("train.epochs") {
		t.Error("a model made in Go has a declaration that sets a key")
	}
}
