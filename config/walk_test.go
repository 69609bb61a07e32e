package config

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/layers"
)

// bursting is a user-defined layer that panics, for images or for every input.
type bursting struct {
	In string `toml:"in" doc:"method that panics"`
}

func (b *bursting) OutputShape(in []int) ([]int, error) {
	if b.In == "OutputShape" {
		panic("boom")
	}
	return in, nil
}

func (b *bursting) Parameters([]int) []layers.Parameter {
	if b.In == "Parameters" {
		panic("boom")
	}
	return nil
}

func (*bursting) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return x, nil }

func TestALayerThatPanicsIsOneErrorOfItsModel(t *testing.T) {
	layers.Registry.Register("zz_bursting", "panics", func() layers.Layer { return &bursting{} })
	for _, in := range []string{"OutputShape", "Parameters"} {
		for name, layer := range map[string]string{
			"encoder[0] (zz_bursting)": `{ kind = "zz_bursting", in = "` + in + `" }`,
			"encoder[0] (residual)":    `{ kind = "residual", layers = [{ kind = "zz_bursting", in = "` + in + `" }] }`,
		} {
			err := load(t, `
[model.a]
encoder = [`+layer+`, { kind = "dense", units = 4 }]
optimizer = { kind = "lbfgs" }
[model.b]
encoder = [{ kind = "dense", units = 0 }]
[model.c]
encoder = [{ kind = "dense", units = 4 }]
`).Check()
			if err == nil {
				t.Fatal("no error")
			}
			text := err.Error()
			want := `model "a": ` + name + ": its OutputShape or Parameters panics for an input of shape "
			if strings.Count(text, `model "a"`) != 1 || !strings.Contains(text, want) || !strings.Contains(text, ": boom") || strings.Count(text, `model "b"`) != 1 {
				t.Errorf("%s in %s: got\n%v", in, name, text)
			}
		}
	}
}
