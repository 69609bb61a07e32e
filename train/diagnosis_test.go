package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tessera/graph/tape"
)

// pressed returns a small model of bars with a multiplier that controls the sparseness. keys are the keys of the multiplier.
func pressed(keys string) string {
	return `[model.m]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 6, activation = "relu" }]
decoder = [{ kind = "dense", bias = false }]
loss = [{ kind = "mse" }, { kind = "l1", weight = { kind = "multiplier", ` + keys + ` } }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train = { epochs = 30, batch = 20, min_epoch_steps = 20 }
`
}

// An l1 norm below 0 is not reachable: without an upper bound, the weight would turn off every unit.
func TestAnUnreachableLimitEndsInADiagnosis(t *testing.T) {
	_, err := Run(context.Background(), model(t, pressed("limit = -1.0, rate = 0.1")), Options{Backend: tape.Backend{}, Out: place(t)})
	var collapsed *Diverged
	if !errors.As(err, &collapsed) || collapsed.Collapse == "" {
		t.Fatalf("got %v, want a collapse", err)
	}
	for _, part := range []string{"training collapsed by step", "every unit is dead", "loss[1] (l1)", "its limit -1", "an upper bound `most` of the weight may help"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestAnUpperBoundOfAMultiplierKeepsTheModelAndWarns(t *testing.T) {
	var warnings []string
	m := model(t, pressed("limit = 0.0, rate = 0.1, most = 0.0001"))
	r, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.HasPrefix(w, "loss[1] (l1): asked for <= 0, reached ") && strings.Contains(w, "upper bound of 0.0001")
	}) {
		t.Errorf("got the warnings %q", warnings)
	}
	last := lines(t, r.Run)[29]
	if dead := last["dead_units"].(float64); dead == 6 {
		t.Error("every unit is dead")
	}
}
