package ui

import (
	"testing"

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
		if name, value := measure(of); name != want || name != "" && value != 1 {
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
