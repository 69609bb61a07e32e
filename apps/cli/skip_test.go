package cli

import "testing"

// A decoder that reads a layer of the encoder cannot decode from the code alone. All commands that reconstruct images still
// work.
func TestAModelWithASkipConnectionIsTrainedMeasuredAndShown(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.skip]
dataset = { name = "bars", count = 40, validation = 0.2 }
encoder = [{ kind = "conv2d", filters = 2, activation = "relu" }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 64 }, { kind = "reshape", shape = [8, 8] }, { kind = "conv2d", filters = 1, from = ["previous", "encoder.0"] }]
hook.teacher = { decay = { kind = "cosine", from = 0.9, to = 1.0, epochs = 40 } }
loss = [{ kind = "mse" }, { kind = "consistency", on = "code" }]
`)
	b.contains("summary", spaced(b.must(0, "summary", "skip").stdout), "hook teacher decay.epochs = 40.0, decay.from = 0.9, ")
	b.must(0, "train", "skip", "--epochs", "1")
	b.must(0, "figure", "reconstructions", "runs/skip")
	b.must(0, "report", "runs/skip")
}
