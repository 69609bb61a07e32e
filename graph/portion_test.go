package graph_test

import (
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
)

func TestAPortionRefusesLayersThatDifferBetweenEvaluations(t *testing.T) {
	file, err := config.Load("models.toml", []byte(`
[model.noisy]
encoder = [{ kind = "dropout" }, { kind = "dense", units = 4 }]
[model.normed]
encoder = [{ kind = "dense", units = 4 }, { kind = "batch_norm" }]
[model.quiet]
encoder = [{ kind = "dropout", rate = 0.0 }, { kind = "dense", units = 4 }]
[model.probed]
encoder = [{ kind = "dense", units = 6 }, { kind = "dense", units = 4 }]
loss    = [{ kind = "mse" }, { kind = "contractive" }]
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"noisy": "encoder.0.noise is noise", "normed": "encoder.1.running_mean is updated", "quiet": "", "probed": ""} {
		spec, err := file.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := graph.New(spec, []int{4, 4})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Program(graph.Request{Batch: 3, Of: 10, Want: []string{graph.Loss}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		if _, err := m.Program(graph.Request{Batch: 3, Of: 2, Want: []string{graph.Loss}}); err == nil {
			t.Errorf("%s: 3 of 2 images are taken", name)
		}
		if _, err := m.Program(graph.Request{Batch: 10, Given: []string{"code"}, Want: []string{graph.Loss}}); err == nil {
			t.Errorf("%s: there are no penalties, and yet a program of them", name)
		}
	}
}
