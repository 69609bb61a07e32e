//go:build unix

package train

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

// sparseCode is the sparse auto-encoder of bench/torch_sae.py: layers that leave about 32 of the units active.
const sparseCode = `
[model.sparse]
encoder    = [%s]
decoder    = [{ kind = "dense" }]
loss       = [{ kind = "mse" }%s]
constraint = [{ kind = "unit_norm", on = "decoder.*.weight" }]
optimizer  = { kind = "adam", learning_rate = 1e-4 }
train      = { epochs = 1000, batch = %d }
`

// BenchmarkSparseCode times whole training steps of sparse auto-encoders on random vectors, as bench/torch_sae.py does:
// 512 inputs, 8,192 units, a batch of 1,024; wide: 768 inputs, 24,576 units, a batch of 512.
func BenchmarkSparseCode(b *testing.B) {
	for _, code := range []struct {
		name                 string
		inputs, units, batch int
		encoder, loss        string
	}{
		{"top_k", 512, 8192, 1024, `{ kind = "dense", units = %d, activation = "relu" }, { kind = "top_k", k = 32 }`, ""},
		{"batch_top_k", 512, 8192, 1024, `{ kind = "dense", units = %d }, { kind = "batch_top_k", k = 32 }`, ""},
		{"jump_relu", 512, 8192, 1024, `{ kind = "dense", units = %d }, { kind = "jump_relu", threshold = 0.91 }`, `, { kind = "l0", weight = 1e-9 }`},
		{"tanh", 512, 8192, 1024, `{ kind = "dense", units = %d }, { kind = "jump_relu", threshold = 0.91, kernel = "tanh" }`, `, { kind = "l0", weight = 1e-9 }`},
		{"gated", 512, 8192, 1024, `{ kind = "dense", units = %d, bias = false }, { kind = "affine", offset = -0.91 }, { kind = "gated" }`, `, { kind = "gated" }, { kind = "l1", on = "encoder.2.gate", weight = 1e-9 }`},
		{"wide", 768, 24576, 512, `{ kind = "dense", units = %d, activation = "relu" }, { kind = "top_k", k = 32 }`, ""},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", code.name, threads), func(b *testing.B) {
				const samples = 8192
				values := make([]float32, code.inputs*samples)
				random := rand.New(rand.NewPCG(1, 2))
				for i := range values {
					values[i] = float32(random.NormFloat64())
				}
				vectors, err := data.FromFloats(values, []int{code.inputs}, nil)
				fatal.If(b, err)
				spec := model(b, fmt.Sprintf(sparseCode, fmt.Sprintf(code.encoder, code.units), code.loss, code.batch))
				spec.Dataset.Source = vectors
				benchmarkStep(b, spec, threads, nil, nil)
			})
		}
	}
}

// BenchmarkTable times training steps of a table of 50,000 words of 100 values, of which a step reads one in a hundred.
func BenchmarkTable(b *testing.B) {
	for _, optimizer := range []string{`{ kind = "sgd" }`, `{ kind = "adagrad" }`, `{ kind = "adam", lazy = true }`, `{ kind = "adam" }`} {
		b.Run(optimizer, func(b *testing.B) {
			spec := model(b, fmt.Sprintf(tables, 50_000, 100, 84, "optimizer = "+optimizer))
			spec.Dataset.Source = words(b, 8400, 50_000)
			benchmarkStep(b, spec, 2, nil, nil)
		})
	}
}
