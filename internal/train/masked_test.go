package train

import (
	"testing"
)

// maskedModel declares a model that hides patches of images of bars, with dropout in its blocks.
const maskedModel = `
[model.masked]
dataset = { name = "bars", count = 60, validation = 0.2 }
encoder = [
  { kind = "patches", size = 4 }, { kind = "token_dense", units = 6 }, { kind = "position" }, { kind = "mask_patches", ratio = 0.5 },
  { kind = "transformer", heads = 2, ratio = 1, dropout = 0.2 }, { kind = "take_token", mean = true },
]
decoder = [
  { kind = "mask_tokens", mask = "encoder.3.mask", from = "encoder.4" }, { kind = "position", values = "sinusoidal" },
  { kind = "transformer", heads = 2, ratio = 1, keys = "encoder.4" }, { kind = "token_dense", units = 16 }, { kind = "unpatch", size = 4 },
]
loss = [{ kind = "mse", mask = "hidden" }]
head.hidden = { from = "encoder.3.mask", layers = [{ kind = "reshape", shape = [2, 2] }, { kind = "upsample", factor = 4 }] }
train = { epochs = 3, batch = 16, checkpoint_seconds = 0 }
`

// Each process draws only the masks of its own images.
func TestAMaskedTransformerTrainsOnSeveralProcesses(t *testing.T) {
	m := model(t, maskedModel)
	sameRun(t, distributed(t, 2, m, func(o *Options) { o.CheckWeights = 1 }), distributed(t, 2, m, plain))
}

// The loss trains the output only at hidden patches, and at inference no patches are hidden. The model therefore has no
// validation error.
func TestTheOutputOfAMaskedTransformerIsNoReconstruction(t *testing.T) {
	r := trained(t, model(t, maskedModel), Options{})
	for _, line := range lines(t, r.Run) {
		if line["val_mse"] != nil || line["val_loss"] != nil {
			t.Errorf("the validation errors are %v and %v", line["val_mse"], line["val_loss"])
		}
	}
	m := model(t, maskedModel, `loss=[{kind="mse",mask="hidden"},{kind="mse",weight=0.1}]`)
	if line := lines(t, trained(t, m, Options{}).Run)[0]; line["val_mse"] == nil {
		t.Error("an output that a second term trains everywhere has no validation error")
	}
}
