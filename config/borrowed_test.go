package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
)

const borrowedText = `[model.m]
dataset = { name = "bars", side = 3 }
encoder = [{ kind = "rbm", units = 4 }]
decoder = [{ kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" }]
loss = [{ kind = "contrastive_divergence" }]
`

// No loss has to read the output of a decoder whose parameters all belong to the encoder. It may have the bias of another layer, if
// that has the right shape.
func TestADecoderMayBorrowAllItsParameters(t *testing.T) {
	expect.NoError(t, load(t, borrowedText).Check())
	expect.NoError(t, load(t, strings.Replace(borrowedText, `{ name = "bars", side = 3 }`, `{ name = "npy", images = "none.npy" }`, 1)).Check(), "of images of unknown shape")
	for old, c := range map[string][2]string{
		`, bias_of = "encoder.0.visible_bias"`:      {``, `no loss compares the output with the images`},
		`bias_of = "encoder.0.visible_bias"`:        {`bias_of = "encoder.0.visible_bais"`, `there is no parameter "encoder.0.visible_bais" of shape [9]`},
		`"encoder.0.visible_bias"`:                  {`"encoder.0.bias"`, `there is no parameter "encoder.0.bias" of shape [9]`},
		`bias_of`:                                   {`bias = false, bias_of`, `got "encoder.0.visible_bias" with bias = false`},
		`{ kind = "contrastive_divergence" }`:       {`{ kind = "contrastive_divergence", on = "output" }`, `energy`},
		`[{ kind = "contrastive_divergence" }]`:     {`[{ kind = "l2" }]`, `no loss compares the output with the images`},
		`{ kind = "rbm", units = 4 }`:               {`{ kind = "rbm", units = 4, deviation = 0.5 }`, `want 1 for binary visible units`},
		`[{ kind = "tied", activation = "sigmoid",`: {`[{ kind = "tied", weight = "encoder.1.weight",`, `encoder.1.weight`},
	} {
		expect.Error(t, load(t, strings.Replace(borrowedText, old, c[0], 1)).Check(), c[1], c[0])
	}
}

// A term on the code or on weights does not train the reconstructions of a decoder without own parameters. Without any term that
// reads samples nothing can be trained.
func TestADecoderThatNoTermTrainsIsAnError(t *testing.T) {
	const text = `[model.m]
dataset = { name = "bars", side = 3 }
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
decoder = [{ kind = "tied", bias = false }]
loss = [{ kind = "mse" }]
`
	expect.NoError(t, load(t, text).Check())
	for _, c := range []struct{ decoder, loss, want string }{
		{`[{ kind = "tied", bias = false }]`, `{ kind = "kl" }`, "no loss compares the output with the images"},
		{`[{ kind = "tied", bias = false }]`, `{ kind = "weight_decay", on = "encoder.*.weight" }`, "no loss compares the output with the images"},
		{`[]`, `{ kind = "weight_decay", on = "encoder.*.weight" }`, "no loss reads the images: all of them depend on parameters alone"},
	} {
		text := strings.NewReplacer(`[{ kind = "tied", bias = false }]`, c.decoder, `{ kind = "mse" }`, c.loss).Replace(text)
		expect.Error(t, load(t, text).Check(), c.want, "decoder", c.decoder, "loss", c.loss)
	}
}
