package cli

import "testing"

// variantModels declares small models with features that most models do not use.
const variantModels = smallModels + `
[model.decoder-only]
extends = "small"
freeze  = ["encoder.*"]
start   = { run = "runs/small" }
hook.prune   = { fraction = 0.25, from = 1, until = 3 }
hook.prune-2 = { kind = "prune", on = "decoder.*", threshold = 0.01, from = 2 }
hook.average = { decay = 0.99 }

[model.wider]
extends = "small"
encoder = [{ kind = "dense", units = 7 }]
loss    = [{ kind = "mse" }]
start   = { run = "runs/small" }
`

func TestARunStartsFromAnother(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", variantModels)
	b.contains("summary", spaced(b.must(0, "summary", "decoder-only").stdout), "parameters 13,318\ntrainable 7,168\n",
		"frozen encoder.*\n", "initial parameters from runs/small, *\n", "hook prune fraction = 0.25, from = 1, ",
		"threshold = 0.01", "hook prune-2 ", "hook average decay = 0.99")
	b.contains("no run", b.must(exitConfig, "train", "decoder-only").stderr, "runs/small is not the folder of a run")
	b.must(0, "train", "small", "--epochs", "1")
	b.contains("too short", b.must(exitConfig, "train", "decoder-only", "--epochs", "2").stderr,
		`--set train.epochs: model "decoder-only": hook.prune-2: from: the phase begins after epoch 2, but the run ends after epoch 2`)
	b.must(0, "train", "decoder-only", "--epochs", "3")
	b.contains("another shape", b.must(exitCheckpoint, "train", "wider", "--epochs", "1").stderr, "encoder.0.weight is missing", "decoder.0.weight has shape")
}
