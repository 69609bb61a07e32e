package cli

import "testing"

// The output of a masked transformer is not a reconstruction. Commands that need reconstructions explain this; all other
// commands work.
func TestAMaskedTransformerIsTrainedMeasuredAndShown(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.masked]
dataset = { name = "bars", count = 40, validation = 0.2 }
encoder = [{ kind = "patches" }, { kind = "mask_patches", ratio = 0.5 }, { kind = "transformer" }, { kind = "take_token", mean = true }]
decoder = [{ kind = "mask_tokens", mask = "encoder.1.mask", from = "encoder.2" }, { kind = "token_dense", units = 16 }, { kind = "unpatch" }]
loss = [{ kind = "mse", mask = "hidden" }]
head.hidden = { from = "encoder.1.mask", layers = [{ kind = "reshape", shape = [2, 2] }, { kind = "upsample", factor = 4 }] }
`)
	b.contains("summary", b.must(0, "summary", "masked").stdout, "decoder.0 (mask)", "encoder.2.attention")
	b.contains("summary --dot", b.must(0, "summary", "masked", "--dot").stdout, `"encoder.1.mask" -> "decoder.0" [label="mask"]`)
	b.must(0, "train", "masked", "--epochs", "1")
	const reason = "the loss mse trains it only where the mask of a training step hides the images"
	b.must(0, "eval", "runs/masked", "--metrics", "mse,max_approx,hoyer")
	b.contains("figure", b.must(2, "figure", "reconstructions", "runs/masked").stderr, reason)
	b.must(0, "report", "runs/masked")
}
