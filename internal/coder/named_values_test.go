package coder_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/metrics"
)

// namings declares a model for every way in which a value can be named: the values of encoder, decoder and heads, of single layers and
// those that layers publish, columns, drawn columns, and globs.
var namings = map[string]string{
	"on a published value": `
encoder = [{ kind = "gaussian", units = 2 }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "encoder.0.mean", weight = 0.01 }]`,
	"on the output of a layer": `
encoder = [{ kind = "dense", units = 4 }, { kind = "dense", units = 2 }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "encoder.0", weight = 0.01 }]`,
	"on a value that the decoder publishes": `
encoder = [{ kind = "dense", units = 4 }]
decoder = [{ kind = "gaussian", units = 3 }, { kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "decoder.0.log_variance", weight = 0.01 }]`,
	"on a value that a head publishes": `
encoder = [{ kind = "dense", units = 4 }]
head.h  = { layers = [{ kind = "gaussian", units = 3 }] }
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "head.h.0.mean", weight = 0.01 }, { kind = "gaussian_kl", on = "h", weight = 0.01 }]`,
	"on a value inside of a block": `
encoder = [{ kind = "dense", units = 4 }, { kind = "residual", layers = [{ kind = "gaussian", units = 4 }] }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "encoder.1.0.mean", weight = 0.01 }]`,
	"against and from": `
encoder = [{ kind = "gaussian", units = 2 }]
head.h  = { from = "encoder.0.mean", layers = [{ kind = "dense", units = 2 }] }
loss    = [{ kind = "mse" }, { kind = "mse", on = "h", against = "encoder.0.log_variance" }]`,
	"another value of a loss": `
encoder = [{ kind = "gaussian", units = 2 }]
head.h  = { from = "code", layers = [{ kind = "dense", units = 2 }] }
loss    = [{ kind = "mse" }, { kind = "contrastive", on = "h", with = "encoder.0.mean" }]`,
	"a mask and weights": `
encoder = [{ kind = "patches", size = 4 }, { kind = "token_dense", units = 4 }, { kind = "mask_patches", ratio = 0.5 }, { kind = "take_token", mean = true }]
decoder = [{ kind = "token_dense", units = 4, from = "encoder.2" }, { kind = "mask_tokens", mask = "encoder.2.mask" }, { kind = "token_dense", units = 16 }, { kind = "unpatch", size = 4 }]
column  = { w = { kind = "uniform" } }
head.h  = { from = "encoder.2.mask", layers = [{ kind = "reshape", shape = [2, 2] }, { kind = "upsample", factor = 4 }] }
loss    = [{ kind = "mse", mask = "h", sample_weight = "w" }]`,
	"names of layers": `
encoder = [{ kind = "dense", units = 4, name = "low" }, { kind = "gaussian", units = 4, name = "trunk" }, { kind = "dense", units = 2, from = ["low", "trunk.mean"] }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "trunk.mean", weight = 0.01 }, { kind = "mse", on = "low", against = "trunk" }]
freeze  = ["low.bias"]`,
	"images as a mask": `
encoder = [{ kind = "dense", units = 64, from = "w" }]
decoder = []
column  = { w = { kind = "normal", shape = [8, 8] } }
loss    = [{ kind = "mse", on = "code", against = "w", mask = "images" }]`,
	"keys of an attention": `
encoder = [{ kind = "patches", size = 4 }, { kind = "attention", heads = 1 }, { kind = "attention", heads = 1, keys = "encoder.0" }, { kind = "flatten" }, { kind = "dense", units = 3 }]
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "encoder.2.attention", weight = 0.01 }]`,
	"a condition": `
encoder   = [{ kind = "dense", units = 6 }, { kind = "condition", by = "time" }]
head.time = { from = "noise", layers = [{ kind = "dense", units = 6 }] }
column    = { noise = { kind = "normal", shape = [2] } }
loss      = [{ kind = "mse" }]`,
	"shared parameters and globs": `
encoder    = [{ kind = "dense", units = 4 }, { kind = "dense", units = 4 }, { kind = "dense", units = 4, share = "encoder.1" }]
loss       = [{ kind = "mse" }, { kind = "l2", on = "encoder.2", weight = 0.01 }, { kind = "weight_decay", on = "encoder.*.weight", weight = 0.01 }]
constraint = [{ kind = "nonneg", on = "decoder.0.weight" }]
freeze     = ["encoder.0.bias"]`,
}

func TestAValueThatIsNamedIsThereAfterTheTraining(t *testing.T) {
	for _, title := range slices.Sorted(maps.Keys(namings)) {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			f, err := config.Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 40 }\ntrain = { epochs = 2, batch = 20 }\n"+namings[title]))
			fatal.If(t, err)
			m, err := f.Model("m")
			fatal.If(t, err)
			out := filepath.Join(t.TempDir(), "run")
			ctx, cancel := context.WithCancel(t.Context())
			_, err = tessera.Train(ctx, m, tessera.Options{Out: out, Report: func(train.Progress) { cancel() }})
			if err != nil && !errors.Is(err, train.ErrInterrupted) {
				t.Fatal(err)
			}
			fatal.If(t, expect.Err(tessera.Resume(t.Context(), out, tessera.Options{})))
			run, err := tessera.Open(out, tessera.Options{})
			fatal.If(t, err)
			defer run.Close()
			expect.NoError(t, expect.Err(run.Evaluate(t.Context(), metrics.Default())))
			for name, path := range map[string]string{"low": "encoder.0", "trunk.mean": "encoder.1.mean"} {
				if title != "names of layers" {
					continue
				}
				image := map[string][]float32{"images": make([]float32, 64)}
				got, err := run.ValueOf(name, image)
				want, wrong := run.ValueOf(path, image)
				if err != nil || wrong != nil || !slices.Equal(got, want) {
					t.Errorf("%s is %v (%v), but %s is %v (%v)", name, got, err, path, want, wrong)
				}
			}
		})
	}
}
