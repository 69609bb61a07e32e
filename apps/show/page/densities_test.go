package page_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/fatal"
)

// The objective of a density is a negative log-likelihood, which may be below 0, over iterations of its algorithm.
func TestAPageOfADensityHasIterationsAndItsLogLikelihood(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "x,y\n"
	for _, row := range []string{"0.1,0.1", "0.11,0.12", "0.1,0.13", "0.12,0.1", "0.3,0.3", "0.31,0.3", "0.3,0.32", "0.32,0.31"} {
		text += row + "\n"
	}
	fatal.If(t, os.WriteFile("v.csv", []byte(text), 0o600))
	file, err := config.Load("models.toml", []byte(`
[model.first]
kind = "gmm"
components = 2
iterations = 4
tolerance = 0
dataset = { name = "csv", file = "v.csv", validation = 0 }
[model.second]
extends = "first"
dataset = { run = "first", value = "code", scale = 0.5 }
`))
	fatal.If(t, err)
	for _, name := range []string{"first", "second"} {
		m, err := file.Model(name)
		fatal.If(t, err)
		r, err := tessera.Train(t.Context(), m, tessera.Options{Out: name})
		fatal.If(t, err)
		fatal.If(t, r.Close())
	}
	shown := rendered(t, "first")
	contains(t, shown, `class="log"> logarithmic`, "Mean of the objective over each iteration.", `"unit":"iteration"`, ">log_likelihood<")
	if strings.Contains(shown, "over each epoch") {
		t.Error("a baseline has epochs")
	}
	contains(t, rendered(t, "second"), "samples of the run first (value code)")
	charts, err := page.ChartsOf("first")
	fatal.If(t, err)
	if json, err := json.Marshal(charts.Runs[0].Columns["loss"]); err != nil || !strings.Contains(string(json), "-") || charts.Panels[0].Log {
		t.Errorf("got the losses %s, logarithmic %t, %v; want negative losses and a linear axis", json, charts.Panels[0].Log, err)
	}
}
