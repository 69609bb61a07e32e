package show_test

import (
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
	"tessera/losses"
)

// A fact of a run is one line of a table: it is in the terminal, on the page, in JSON and in Markdown.
func TestTheSpeedOfATrainingIsInEveryOutput(t *testing.T) {
	m, err := tessera.Declare(config.Model{Name: "bars", Dataset: config.Dataset{Source: &data.Bars{Count: 40}},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3}}}, Losses: []config.Loss{{Loss: &losses.MSE{}}}, Train: config.Train{Epochs: 2}})
	fatal.If(t, err)
	r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: t.TempDir() + "/run"})
	fatal.If(t, err)
	defer r.Close()
	d := show.RunDocument(r, nil, false)
	fact, ok := d.Find("samples_per_second")
	if shown, _ := fact.Value.(doc.Shown); !ok || shown.Value.(float64) <= 0 {
		t.Fatalf("got %+v", fact)
	}
	var text, page, json, markdown strings.Builder
	for _, err := range []error{d.Text(&text, doc.Screen{}), d.HTML(&page), d.JSON(&json), d.Markdown(&markdown)} {
		fatal.If(t, err)
	}
	shown := doc.Text(fact.Value)
	for got, want := range map[string]string{text.String(): "samples per second  " + shown, page.String(): ">samples per second</th><td>" + shown + "</td>",
		json.String(): `"samples_per_second": `, markdown.String(): "- samples per second: " + shown} {
		expect.Contains(t, got, want)
	}
}

// The bias of a row is a value of the code of matrix_factorisation and no component.
func TestKindCountsTheDeclaredComponents(t *testing.T) {
	m := &config.Model{Kind: "matrix_factorisation", Baseline: &classical.MatrixFactorisation{Components: 3, Biases: true}}
	expect.Equal(t, show.KindOf(m, m.Baseline.Describe().Units), "matrix_factorisation, a baseline with 3 components")
}
