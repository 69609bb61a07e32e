package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
)

func TestTwoRunsGiveEqualBytes(t *testing.T) {
	m := model(t, everything)
	sameRun(t, trained(t, m, Options{}).Run, trained(t, m, Options{}).Run)
}

// If the new number of epochs were smaller than the checkpoint's epoch, the parameters would include later steps.
func TestARunWithinAnEpochNeedsThatEpoch(t *testing.T) {
	m := model(t, everything, "dataset.count=500", "train.batch=96", "train.min_epoch_steps=5") // two passes of four steps
	for _, at := range []int{18, 20} {
		run := place(t)
		ctx, backend := cancelledAt(at, tape.Backend{})
		if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		want, config := read(t, run, folder.Model), read(t, run, folder.Config)
		refused := func(what string, epochs int) {
			t.Helper()
			_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: epochs})
			if key, ok := errors.AsType[part.KeyError](err); !ok || key.Key != "epochs" || !strings.Contains(err.Error(), "got 2, but the last checkpoint is within epoch 3; want at least 3") {
				t.Errorf("step %d, %s: %v", at, what, err)
			}
			expect.Slice(t, read(t, run, folder.Model), want, "step", at, what, "the parameters have changed")
		}
		refused("the option", 2)
		expect.Slice(t, read(t, run, folder.Config), config, "config.toml was edited")
		edit(t, run, "epochs = 4", "epochs = 2")
		refused("an edited declaration", 0)
		if r, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 3}); err != nil || r.Epochs != 3 || r.Step != 24 {
			t.Errorf("step %d: three epochs: %+v, %v", at, r, err)
		}
	}
}

func TestStateOfLayersResumesToTheSameBytes(t *testing.T) {
	m := model(t, strings.Replace(everything, `kind = "dense"`, `kind = "conv2d"
filters = 2
[[model.everything.encoder]]
kind = "batch_norm"
[[model.everything.encoder]]
kind = "plasticity"
[[model.everything.encoder]]
kind = "dense"`, 1))
	want := trained(t, m, Options{})
	result, err := Open(want.Run)
	fatal.If(t, err)
	for path, start := range map[string]float32{"encoder.3.running_mean": 0, "encoder.4.gain": 1, "encoder.4.bias": -3} {
		p, err := result.Parameter(path)
		fatal.If(t, err)
		if slices.Contains(p.Data, start) {
			t.Errorf("after %d steps %s is %v: it has not moved", want.Step, path, p.Data)
		}
	}
	interruptedEverywhere(t, m, apart())
}
