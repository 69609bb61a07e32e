package engine

import (
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/parallel/team"
)

// layered are models of the layers on images and on tokens that shipped models do not have.
const layered = `
[model.pooled]
dataset = "bars"
encoder = [
  { kind = "conv2d", filters = 4, groups = 1 },
  { kind = "instance_norm" },
  { kind = "elu" },
  { kind = "max_pool", kernel = 3, stride = 2, padding = "same" },
  { kind = "residual", layers = [{ kind = "layer_norm" }, { kind = "conv2d", filters = 4, groups = 2 }, { kind = "tanh" }] },
  { kind = "avg_pool" },
  { kind = "dense", units = 5, activation = "sigmoid" },
]
decoder = [
  { kind = "dense", units = 12 },
  { kind = "layer_norm" },
  { kind = "reshape", shape = [2, 2, 3] },
  { kind = "upsample" },
  { kind = "conv2d_transpose", filters = 2, kernel = 4, stride = 2, activation = "tanh" },
  { kind = "conv2d_transpose", filters = 1, padding = 1 },
]

[model.filtered]      # enough channels for Winograd's algorithm, in a batch of 5
dataset = "bars"
encoder = [
  { kind = "conv2d", filters = 64 },
  { kind = "tanh" },
  { kind = "conv2d", filters = 64 },
  { kind = "dense", units = 5, activation = "sigmoid" },
]

[model.grey]
dataset = "bars"
encoder = [
  { kind = "max_pool" },
  { kind = "upsample" },
  { kind = "residual", layers = [{ kind = "conv2d", filters = 1 }] },
  { kind = "layer_norm" },
  { kind = "avg_pool", kernel = 3, stride = 2, padding = 1 },
  { kind = "dense", units = 5, activation = "sigmoid" },
]

[model.tokens]
dataset = "bars"
encoder = [
  { kind = "attention", heads = 2, bias = true },
  { kind = "patches", size = 2 },
  { kind = "position" },
  { kind = "residual", layers = [{ kind = "attention", heads = 1 }, { kind = "token_dense", units = 4, activation = "tanh" }] },
  { kind = "plasticity" },
  { kind = "dense", units = 5, activation = "sigmoid" },
]
decoder = [{ kind = "tied", weight = "encoder.5.weight", activation = "tanh" }, { kind = "dense" }]

[model.tied]
dataset = "bars"
encoder = [{ kind = "dense", units = 7, activation = "tanh" }, { kind = "dense", units = 5 }, { kind = "plasticity", mean = 0.1 }]
decoder = [{ kind = "tied", weight = "encoder.1.weight" }, { kind = "tied" }, { kind = "leaky_relu" }]
loss = [{ kind = "mse" }, { kind = "weight_decay", weight = 0.01 }, { kind = "max_approximation", weight = 0.1 }]
`

func TestLayersOnImagesAndTokensAgreeWithTheTapeMachine(t *testing.T) {
	file, err := config.Load("models.toml", []byte(layered))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range file.Names() {
		t.Run(name, func(t *testing.T) {
			spec, err := file.Model(name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := graph.New(spec, shapeOf(t, spec))
			if err != nil {
				t.Fatal(err)
			}
			threads, batches := []int{1, 2}, []int{1, 2, 5}
			if testing.Short() { // as the race detector runs it
				threads, batches = []int{2}, []int{5}
			}
			for _, threads := range threads {
				team := team.New(threads)
				defer team.Close()
				for _, batch := range batches {
					double, single := newPair[float64](t, m, batch, team), newPair[float32](t, m, batch, team)
					for step := range 3 {
						double.step(t, step, 1e-12)
						single.step(t, step, 1e-5)
					}
				}
			}
			wantKnownOps(t, m)
		})
	}
}
