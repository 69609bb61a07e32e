package graph_test

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/graph"
	"tessera/layers"
	"tessera/ops"
)

// wrong is a layer that violates its declaration.
type wrong struct {
	How string `toml:"how"`
}

func init() {
	layers.Registry.Register("wrong", "does not do what it declares", func() layers.Layer { return &wrong{} })
}

func (*wrong) OutputShape(in []int) ([]int, error) { return in, nil }
func (*wrong) Parameters([]int) []layers.Parameter { return nil }
func (w *wrong) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	switch w.How {
	case "nothing":
		return nil, nil
	case "panic":
		panic("boom")
	}
	return ops.Reshape(x, x.Shape()[0], 2, 2)
}

func TestAWrongLayerIsNamed(t *testing.T) {
	for how, says := range map[string]string{
		"nothing": "encoder.1 (wrong): its Apply returns no node",
		"panic":   "encoder.1 (wrong): boom",
		"shape":   "encoder.1 (wrong): its Apply gives [3 2 2], but its OutputShape says [3 4]",
	} {
		f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }, { kind = "wrong", how = "`+how+`" }]
`))
		if err != nil {
			t.Fatal(err)
		}
		spec, err := f.Model("m")
		if err != nil {
			t.Fatal(err)
		}
		m, err := graph.New(spec, []int{8, 8})
		if err == nil {
			_, err = m.Program(graph.Request{Batch: 3})
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q in it", how, err, says)
		}
	}
}
