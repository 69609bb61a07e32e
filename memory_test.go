package tessera_test

import (
	"errors"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
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
		"":                                   {Images: images},
		"its images are not in this process": {},
		"not the images that the run was trained on": {Images: rows(t, 0.5)},
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

func TestAHeadOnImagesInMemoryHasOneUnitForEachClass(t *testing.T) {
	values, labels := make([]float32, 60*30), make([]int, 60)
	for i := range labels {
		labels[i] = i % 3
		values[i*30+labels[i]] = 1
	}
	images, err := data.FromFloats(values, []int{6, 5}, labels)
	if err != nil {
		t.Fatal(err)
	}
	declared := config.Model{Dataset: config.Dataset{Source: images}, Train: config.Train{Epochs: 2, Batch: 10},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 4, Activation: "sigmoid"}}},
		Decoder: []config.Layer{},
		Heads:   map[string]config.Head{"class": {Layers: []config.Layer{{Layer: &layers.Dense{}}}}},
		Losses:  []config.Loss{{Loss: &losses.CrossEntropy{}, On: "class"}}}
	model, err := tessera.Declare(declared)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/run"
	run, err := tessera.Train(t.Context(), model, tessera.Options{Out: out})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	opened, err := tessera.Open(out, tessera.Options{Images: images})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for name, r := range map[string]*tessera.Run{"trained": run, "opened": opened} {
		logits, err := r.Value("class", values[:2*30])
		if err != nil || len(logits) != 2*3 {
			t.Errorf("%s: %d logits of two images, want 3 of each (%v)", name, len(logits), err)
		}
		measured, err := r.Evaluate(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := measured.Values.Number("accuracy"); !ok {
			t.Errorf("%s: no accuracy: %v", name, measured.Values)
		}
	}
	images, _ = data.FromFloats(values, []int{6, 5}, nil)
	declared.Dataset.Source = images
	if _, err := tessera.Declare(declared); err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("a loss on labels, and images without any: %v", err)
	}
}
