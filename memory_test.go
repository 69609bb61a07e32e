package tessera_test

import (
	"errors"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/layers"
)

// rows returns images of 6x5 pixels with one bright row each.
func rows(t testing.TB, bright float32) *data.Memory {
	t.Helper()
	values := make([]float32, 36*30)
	for i := range 36 {
		for j := range 5 {
			values[i*30+i%6*5+j] = bright
		}
	}
	m, err := data.FromFloats(values, []int{6, 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestARunOfImagesInMemoryNeedsThemAgain(t *testing.T) {
	images := rows(t, 1)
	model, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: images},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 4, Activation: "sigmoid"}}}, Train: config.Train{Epochs: 2, Batch: 10}})
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/run"
	run, err := tessera.Train(t.Context(), model, tessera.Options{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if report, err := run.Evaluate(t.Context(), nil); err != nil || report.Images != 36 {
		t.Errorf("of the run that was trained: %+v, %v", report, err)
	}
	for want, o := range map[string]tessera.Options{
		"":                                      {Images: images},
		"its images are not in this process":    {},
		"other images than the run was trained": {Images: rows(t, 0.5)},
	} {
		opened, err := tessera.Open(out, o)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		var missing *data.Error
		_, err = opened.Evaluate(t.Context(), nil)
		if want == "" && err != nil || want != "" && (!errors.As(err, &missing) || !strings.Contains(err.Error(), want)) {
			t.Errorf("Images %v: got %v, want %q", o.Images != nil, err, want)
		}
	}
}
