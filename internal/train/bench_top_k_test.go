//go:build unix

package train

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

// topK is the sparse auto-encoder of bench/torch_sae.py: 512 inputs, 8,192 units of which 32 are active, a batch of 1,024.
const topK = `
[model.top-k]
encoder    = [{ kind = "dense", units = 8192, activation = "relu" }, { kind = "top_k", k = 32 }]
decoder    = [{ kind = "dense" }]
loss       = [{ kind = "mse" }]
constraint = [{ kind = "unit_norm", on = "decoder.*.weight" }]
optimizer  = { kind = "adam", learning_rate = 1e-4 }
train      = { epochs = 1000, batch = 1024 }
`

// BenchmarkTopK times whole training steps of a sparse auto-encoder on random vectors, as bench/torch_sae.py does.
func BenchmarkTopK(b *testing.B) {
	const inputs, samples = 512, 8192
	values := make([]float32, inputs*samples)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	vectors, err := data.FromFloats(values, []int{inputs}, nil)
	fatal.If(b, err)
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			spec := model(b, topK)
			spec.Dataset.Source = vectors
			benchmarkStep(b, spec, threads, nil, nil)
		})
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
