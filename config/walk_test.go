package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/layers"

	"gorgonia.org/gorgonia"
)

// bursting is a user-defined layer that panics for images, or for every input.
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

// careless is a user-defined layer that declares parameters or shapes that no graph can have.
type careless struct {
	How string `toml:"how" doc:"what is wrong"`
}

func (c *careless) OutputShape(in []int) ([]int, error) {
	if c.How == "shape" {
		return []int{-3}, nil
	}
	return in, nil
}

func (c *careless) Parameters([]int) []layers.Parameter {
	switch p := (layers.Parameter{Name: "w", Shape: []int{2}, Init: &layers.Zeros{}, FanIn: 1, FanOut: 1}); c.How {
	case "name":
		p.Name = ""
		return []layers.Parameter{p}
	case "empty":
		p.Shape = []int{0}
		return []layers.Parameter{p}
	case "init":
		p.Init = nil
		return []layers.Parameter{p}
	}
	return nil
}

func (*careless) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return x, nil }

func TestALayerThatDeclaresTheImpossibleIsNamed(t *testing.T) {
	layers.Registry.Register("zz_careless", "declares the impossible", func() layers.Layer { return &careless{} })
	for how, want := range map[string]string{
		"shape": "its OutputShape gives [-3] for an input of shape [1024], want axes > 0",
		"name":  "its parameter 0 has no name",
		"empty": `its parameter "w" has the shape [0], want axes > 0`,
		"init":  `its parameter "w" has no Init`,
	} {
		err := load(t, `
[model.a]
dataset = "bars"
encoder = [{ kind = "flatten" }, { kind = "zz_careless", how = "`+how+`" }, { kind = "dense", units = 4 }]
`).Check()
		expect.Error(t, err, "encoder[1] (zz_careless): ", how)
		expect.Error(t, err, want[strings.LastIndex(want, "its"):][:20], how)
	}
}

func TestAnImageLayerAfterACodeShowsTheReshape(t *testing.T) {
	err := load(t, `
[model.a]
dataset = "bars"
encoder = [{ kind = "conv2d", filters = 3, stride = 2 }]
decoder = [{ kind = "conv2d_transpose", filters = 1, stride = 2 }]
`).Check()
	expect.Error(t, err, `put { kind = "reshape", shape = [4, 4, 3] } before it`)
}

func TestUnrolledStepsAreBounded(t *testing.T) {
	err := load(t, `
[model.a]
dataset = "bars"
encoder = [{ kind = "unrolled", units = 9, steps = 2147483647 }]
`).Check()
	expect.Error(t, err, "steps: got 2147483647, want 1 to 1000")
}
