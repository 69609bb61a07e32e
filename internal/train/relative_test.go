package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph/tape"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// relative contains models of parts whose terms are relative to the scale of the data, and whose encoder follows the scale of
// each image.
var relative = map[string]string{
	"unrolled": `encoder = [{ kind = "relative", layers = [{ kind = "unrolled", units = 6, steps = 4 }] }]
decoder = [{ kind = "tied", weight = "encoder.0.0.weight", bias = false }]`,
	"dense": `encoder = [{ kind = "relative", layers = [{ kind = "dense", units = 6, bias = false }, "batch_norm", "relu"] }]
decoder = [{ kind = "dense", bias = false }]`,
}

const relativeTerms = `
[model.m]
loss = [
  { kind = "mse", relative = true },
  { kind = "max_approximation", weight = 0.01, relative = true },
  { kind = "hoyer", target = 1.0, weight = { kind = "multiplier", limit = 0.3, rate = 1e-2, least = 1e-3, most = 0.1 } },
  { kind = "activity_floor", weight = 0.01, floor = 0.3, relative = true },
  { kind = "relevance", weight = 0.01 },
  { kind = "group_lasso", weight = 0.01 },
]
constraint = [{ kind = "nonneg", on = "decoder.*.weight" }, { kind = "unit_norm", on = "decoder.*.weight" }]
optimizer = { kind = "adam", learning_rate = 1e-2 }
train = { epochs = 5, batch = 16 }
dataset = "bars"
hook = { background = { until = 4 } }
`

// The parts do not depend on the unit of the data. Images times a power of two give the same atoms, except for the effect of
// the constants that keep quotients finite. Images times 0.01 or 100 give the same atoms up to rounding.
func TestPartsDoNotDependOnTheScaleOfTheImages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pixels := make([]float32, 64*8*8)
	for i := range pixels {
		switch {
		case i%64 < 8: // the first row is in every image
			pixels[i] = 0.5 + 0.5*r.Float32()
		case r.IntN(3) == 0:
			pixels[i] = r.Float32()
		}
	}
	atoms := func(text string, scale float32) []float32 {
		scaled := lists.Map(pixels, func(v float32) float32 { return scale * v })
		load := func(context.Context, *config.Dataset) (*data.Set, error) {
			images, err := data.NewFloats([]int{8, 8}, scaled, nil)
			return &data.Set{Name: "mine", Train: images, Shape: images.Shape}, err
		}
		run, err := Run(context.Background(), model(t, relativeTerms+text+"\n"), Options{Backend: tape.Backend{}, Out: place(t), Load: load})
		fatal.If(t, err)
		path := "decoder.0.weight"
		if text == relative["unrolled"] {
			path = "encoder.0.0.weight"
		}
		for _, p := range run.Trained.Parameters {
			if p.Path == path {
				return p.Data
			}
		}
		t.Fatal("no " + path)
		return nil
	}
	for name, text := range relative {
		want := atoms(text, 1)
		for _, c := range []struct{ scale, most float64 }{{1. / 128, 1e-4}, {128, 1e-4}, {0.01, 2e-3}, {100, 2e-3}} {
			t.Run(fmt.Sprint(name, " ", c.scale), func(t *testing.T) {
				worst := 0.0
				for i, v := range atoms(text, float32(c.scale)) {
					worst = max(worst, math.Abs(float64(v)-float64(want[i])))
				}
				if !(worst <= c.most) {
					t.Errorf("an atom differs by %g, want <= %g", worst, c.most)
				}
			})
		}
	}
}
