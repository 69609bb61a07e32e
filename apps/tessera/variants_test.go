package main

import "testing"

// variantModels are small models that use what most do not.
const variantModels = smallModels + `
[model.decoder-only]
extends = "small"
freeze  = ["encoder.*"]
start   = { run = "runs/small" }

[model.wider]
extends = "small"
encoder = [{ kind = "dense", units = 7 }]
loss    = [{ kind = "mse" }]
start   = { run = "runs/small" }
`

func TestARunStartsFromAnother(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", variantModels)
	b.contains("summary", b.must(0, "summary", "decoder-only").stdout, "13,318 parameters, 7,168 of them trainable")
	b.contains("no run", b.must(exitConfig, "train", "decoder-only").stderr, "runs/small is not the folder of a run")
	b.must(0, "train", "small", "--epochs", "1")
	b.must(0, "train", "decoder-only", "--epochs", "1")
	b.contains("another shape", b.must(exitCheckpoint, "train", "wider", "--epochs", "1").stderr, "it holds no encoder.0.weight", "decoder.0.weight has shape")
}
