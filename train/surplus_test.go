package train

import "testing"

// surplus returns a model with 10 units for images of 5 parts, and with one more term.
func surplus(term string) string {
	return `[model.m]
dataset = { name = "shapes", parts = 5, height = 12, width = 12, count = 200 }
encoder = [{ kind = "relative", layers = [{ kind = "unrolled", units = 10, steps = 8 }] }]
decoder = [{ kind = "tied", weight = "encoder.0.0.weight", bias = false }]
loss = [{ kind = "mse", relative = true }` + term + `]
constraint = [{ kind = "nonneg", on = "decoder.*.weight" }, { kind = "unit_norm", on = "decoder.*.weight" }]
optimizer = { kind = "adam", learning_rate = 1.6e-2, schedule = { kind = "cosine" } }
train = { epochs = 20, batch = 50, min_epoch_steps = 20 }
`
}

// Under terms that are steep at 0, a unit that another unit could replace loses its activation. The remaining units are the
// parts.
func TestSurplusUnitsAreSwitchedOff(t *testing.T) {
	for _, c := range []struct {
		name, term  string
		least, most float64 // range of the number of dead units
	}{
		{"no term", "", 0, 2},
		{"relevance", `, { kind = "relevance", weight = { kind = "linear", from = 0.0, to = 0.05, epochs = 20 } }`, 3, 5},
		{"group_lasso", `, { kind = "group_lasso", weight = { kind = "linear", from = 0.1, to = 0.002, epochs = 10 } }`, 3, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			history := lines(t, trained(t, model(t, surplus(c.term)), Options{}).Run)
			dead := history[len(history)-1]["dead_units"].(float64)
			t.Log(history[len(history)-1])
			if dead < c.least || dead > c.most {
				t.Errorf("%v of 10 units are dead, want %v to %v", dead, c.least, c.most)
			}
		})
	}
}
