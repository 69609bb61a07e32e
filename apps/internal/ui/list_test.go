package ui

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/metrics"
)

func TestTheListShowsTheNumberThatTellsMost(t *testing.T) {
	for want, of := range map[string]metrics.Values{
		"val_accuracy":        {{Name: "val_mse", Number: 2}, {Name: "val_nll", Number: 3}, {Name: "val_accuracy", Number: 1}},
		"val_colour.accuracy": {{Name: "val_colour.accuracy", Number: 1}},
		"val_mse":             {{Name: "mse", Number: 2}, {Name: "knn_accuracy", Number: 3}, {Name: "val_mse", Number: 1}},
		"mse":                 {{Name: "accuracy", Missing: "no labels"}, {Name: "mse", Number: 1}},
		"":                    {{Name: "loss", Number: 1}},
	} {
		if name, value := (status{Status: train.Status{Metrics: of}}).measure(); name != want || name != "" && value != 1 {
			t.Errorf("%v: got %s %v, want %s 1", of, name, value, want)
		}
	}
	var best status
	for _, accuracy := range []float64{0.5, 0.9, 0.7} {
		best.take(metrics.Values{{Name: "accuracy", Number: accuracy}})
	}
	for _, mse := range []float64{0.5, 0.2, 0.7} {
		best.take(metrics.Values{{Name: "mse", Number: mse}})
	}
	accuracy, _ := best.Metrics.Number("accuracy")
	if mse, _ := best.Metrics.Number("mse"); accuracy != 0.9 || mse != 0.2 {
		t.Errorf("the best trial: accuracy %v, mse %v", accuracy, mse)
	}
}

func TestLinksInsideARelativeFolderAreFollowed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"served/runs/a", "outside"} {
		fatal.If(t, os.MkdirAll(name, 0o700))
	}
	if err := errors.Join(os.Symlink(filepath.Join(dir, "served", "runs"), "served/in"), os.Symlink("../outside", "served/out")); err != nil {
		t.Skip(err)
	}
	s, err := New("served", Options{})
	fatal.If(t, err)
	for path, want := range map[string]error{"runs/a": nil, "in/a": nil, "": nil, "out": errNotHere, "in/b": errNotHere, "../outside": errNotHere, ".hidden": errNotHere} {
		if at, err := s.find(path); !errors.Is(err, want) || want == nil && at != filepath.Join("served", path) {
			t.Errorf("%q: got %q, %v, want %v", path, at, err, want)
		}
	}
}
