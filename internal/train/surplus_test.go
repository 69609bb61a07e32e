package train

import (
	"fmt"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

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
	if testing.Short() {
		t.Skip("trains for 20 epochs")
	}
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

// Atoms of zeros and black images have costs and gradients: the training goes on.
func TestRelativeTermsOfZerosAreFinite(t *testing.T) {
	black := filepath.Join(t.TempDir(), "black.npy")
	fatal.If(t, data.WriteImages(black, []int{4, 4}, make([]float32, 20*16)))
	for name, text := range map[string]string{
		"atoms":       `dataset = { name = "bars", count = 100 }` + "\n" + `loss = [{ kind = "mse" }, { kind = "group_lasso", weight = 0.1 }]`,
		"group_lasso": fmt.Sprintf("dataset = { name = \"npy\", images = %q }\n", filepath.ToSlash(black)) + `loss = [{ kind = "mse" }, { kind = "group_lasso" }]`,
		"mse":         fmt.Sprintf("dataset = { name = \"npy\", images = %q }\n", filepath.ToSlash(black)) + `loss = [{ kind = "mse", relative = true }]`,
		"max_approximation": fmt.Sprintf("dataset = { name = \"npy\", images = %q }\n", filepath.ToSlash(black)) +
			`loss = [{ kind = "mse" }, { kind = "max_approximation", relative = true }]`,
	} {
		t.Run(name, func(t *testing.T) {
			decoder := `decoder = [{ kind = "dense", init = "zeros", bias = false }]`
			if name != "atoms" {
				decoder = `decoder = [{ kind = "dense", init = { kind = "uniform", low = 0.0, high = 1.0 }, bias = false }]`
			}
			m := model(t, "[model.m]\n"+text+"\n"+`encoder = [{ kind = "dense", units = 6, activation = "sigmoid" }]`+"\n"+decoder+"\ntrain = { epochs = 2, batch = 8 }\n")
			for _, line := range lines(t, trained(t, m, Options{}).Run) {
				if loss := line["loss"].(float64); !(loss >= 0 && loss < 100) {
					t.Errorf("the loss is %v", loss)
				}
			}
		})
	}
}
