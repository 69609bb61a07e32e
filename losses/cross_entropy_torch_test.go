package losses_test

import (
	_ "embed"
	"encoding/json"
	"errors"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws"
	"tessera/losses"
)

// torch_cross_entropy.json contains results of PyTorch in float64, written by torch_cross_entropy.py.
//
//go:embed testdata/torch_cross_entropy.json
var torchCrossEntropy []byte

func TestCrossEntropyWithItsSettingsEqualsPyTorch(t *testing.T) {
	var f struct {
		Logits, Clean [][]float64
		Labels        []int
		Cases         []struct {
			Kind     string
			Settings map[string]any
			Value    float64
			Gradient [][]float64
		}
	}
	fatal.If(t, json.Unmarshal(torchCrossEntropy, &f))
	for _, c := range f.Cases {
		e, ok := losses.Registry.Lookup(c.Kind)
		if !ok {
			t.Fatal(c.Kind)
		}
		l := e.New()
		for key, value := range c.Settings {
			if list, ok := value.([]any); ok {
				numbers := lists.Map(list, func(v any) float64 { return v.(float64) })
				value = numbers
			}
			fatal.If(t, laws.Set(l, key, value))
		}
		leaves := map[string][][]float64{"labels": labelled(f.Labels, len(f.Logits[0]))}
		switch c.Kind {
		case "trades":
			leaves["clean"] = f.Clean
		case "distillation":
			leaves["value.teacher"] = f.Clean
			if c.Settings["soft"] == 1.0 { // reads no labels
				delete(leaves, "labels")
			}
		}
		value, slope := valueOf(t, l, f.Logits, leaves)
		expect.Near(t, value, c.Value, 1e-10, c.Kind, c.Settings)
		for i, row := range c.Gradient {
			for j, want := range row {
				expect.Near(t, slope[i][j], want, 1e-10, c.Kind, c.Settings, "the slope of unit", j, "of image", i)
			}
		}
	}
}

func TestCrossEntropySaysWhichSettingIsWrong(t *testing.T) {
	for key, l := range map[string]*losses.CrossEntropy{
		"class_weights": {ClassWeights: []float64{1, -1}},
		"focal":         {Focal: 0.5},
	} {
		var setting part.KeyError
		if err := l.Check(); !errors.As(err, &setting) || setting.Key != key {
			t.Errorf("got %v, want an error of %s", err, key)
		}
	}
	for _, l := range []*losses.CrossEntropy{{Focal: 2, Smoothing: 0.1}, {ClassWeights: []float64{0, 0}}} {
		if l.Check() == nil {
			t.Errorf("%+v: no error", l)
		}
	}
	if l := (&losses.CrossEntropy{ClassWeights: []float64{1, 2}}); l.CheckUnits(3) == nil || l.CheckUnits(2) != nil {
		t.Error("two weights suit three classes, or not two")
	}
}
