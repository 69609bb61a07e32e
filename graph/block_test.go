package graph_test

import (
	"slices"
	"testing"

	"tessera/config"
	"tessera/graph"
)

// A block's layers have their own parameters, state and noise, under the path of the block.
func TestProgramsContainTheParametersOfABlock(t *testing.T) {
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = "bars"
encoder = [
  { kind = "residual", layers = [{ kind = "dropout" }, { kind = "batch_norm" }, { kind = "dropout" }] },
  { kind = "dropout" },
  { kind = "dense", units = 4, bias = false },
]
`))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	m, err := graph.New(spec, []int{8, 8})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Program(graph.Request{Batch: 3, Training: true})
	if err != nil {
		t.Fatal(err)
	}
	var inputs, parameters, moved []string
	for _, in := range p.Inputs {
		inputs = append(inputs, in.Name)
	}
	for _, b := range p.Parameters {
		parameters = append(parameters, b.Path)
	}
	for _, u := range p.Updates {
		moved = append(moved, u.Parameter.Path)
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"inputs", inputs, []string{"input", "encoder.0.noise", "encoder.0.noise.2", "encoder.1.noise"}},
		{"parameters", parameters, []string{"encoder.0.1.running_mean", "encoder.0.1.running_variance", "encoder.0.1.scale", "encoder.0.1.shift",
			"encoder.2.weight", "decoder.0.weight", "decoder.0.bias"}},
		{"updates", moved, []string{"encoder.0.1.running_mean", "encoder.0.1.running_variance"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
}
