package train

import (
	"math"
	"strings"
	"testing"

	"tessera/losses"
)

// multiplied is the model of the tests with its sparseness held by a multiplier.
func multiplied(t *testing.T) string {
	t.Helper()
	text := strings.Replace(everything, "kind = \"kl\"\nweight = 0.001", `kind = "hoyer"
target = 1.0
weight = { kind = "multiplier", limit = 0.6, rate = 0.01, from = 0.001 }`, 1)
	if text == everything {
		t.Fatal("the model of the tests has no kl")
	}
	return text
}

func TestARunWithAMultiplierResumesToTheSameBytes(t *testing.T) {
	interruptedEverywhere(t, model(t, multiplied(t)))
}

// The weights are those of the formula, from the terms of the steps: with one batch per epoch, a line of metrics is a step.
func TestAMultiplierFollowsItsTerm(t *testing.T) {
	m := model(t, multiplied(t), "train.batch=1000000", "train.epochs=5", "hook.early_stopping=false")
	r := trained(t, m, Options{})
	rule := m.Losses[1].Weight.(*losses.Multiplier)
	weight := rule.From
	for i, line := range lines(t, r.Run) {
		value := line["hoyer"].(float64) / float64(float32(weight))
		if value < 0.1 || value > 1 {
			t.Fatalf("step %d: the term without its weight is %v, want a mean of 1 - sparseness", i+1, value)
		}
		weight = rule.Next(weight, value)
	}
	from, err := readState(r.Run + "/state.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if got := from.Weights; len(got) != 3 || got[0] != 0 || math.Abs(got[1]-weight) > 1e-7*weight || got[2] != 0 {
		t.Errorf("after 5 steps the weights are %v, want [0 %v 0]", got, weight)
	}
}
