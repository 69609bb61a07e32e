package page_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
)

// trained trains a small model of bars with the given settings and returns the run's folder. If interruptAfter > 0, the
// training is interrupted after this number of epochs.
func trained(t *testing.T, interruptAfter int, sets ...string) string {
	t.Helper()
	declared, err := config.Load("models.toml", []byte(`
[model.small]
dataset = { name = "bars", count = 60, validation = 0.2 }
encoder = [{ kind = "dense", units = 3, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 4, batch = 20, checkpoint_seconds = 0 }
`))
	fatal.If(t, err)
	var changes []config.Set
	for _, text := range sets {
		change, err := config.ParseSet(text)
		fatal.If(t, err)
		changes = append(changes, change)
	}
	m, err := declared.Model("small", changes...)
	fatal.If(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := filepath.Join(t.TempDir(), "small")
	r, err := tessera.Train(ctx, m, tessera.Options{Threads: 1, Out: out, Report: func(p train.Progress) {
		if p.EpochDone && p.Epoch == interruptAfter {
			cancel()
		}
	}})
	if err != nil && interruptAfter == 0 {
		t.Fatal(err)
	}
	if err == nil {
		r.Close()
	}
	return out
}

func TestAPageSaysHowFarATrainingIs(t *testing.T) {
	for _, c := range []struct {
		name      string
		interrupt int
		sets      []string
		want      []string
		never     string
	}{
		{"finished", 0, nil, []string{"state: finished after 4 epochs", "training: adam, mini-batches of 20, 4 epochs, seed 1"}, "tessera resume"},
		{"interrupted", 2, nil, []string{"state: not finished: 2 of 4 epochs were done", "tessera resume "}, "finished after"},
		{"early stopping that did not stop", 0, []string{"hook.early_stopping.patience=4", "optimizer.learning_rate=0.9"}, []string{"state: finished after 4 epochs",
			"early stopping keeps the best epoch: the parameters of epoch ", "adam, mini-batches of 20, at most 4 epochs"}, "tessera resume"},
		{"stopped early", 0, []string{"hook.early_stopping.patience=2", "hook.early_stopping.min_delta=100", "train.epochs=50"}, []string{"ended by early stopping after 3 of 50 epochs",
			"the parameters of epoch 1 are shown",
			"12 validation images of bars (they also chose the epoch)"}, "tessera resume"},
		{"converged", 0, []string{`optimizer={ kind = "lbfgs" }`, "train.epochs=5000", "encoder.0.units=1", "dataset.count=5", "dataset.validation=0"},
			[]string{"ended after ", " of 5,000 iterations: the optimizer found no better point", "training: lbfgs on the full batch, at most 5,000 iterations, seed 1"}, "mini-batches"},
		{"several passes", 0, []string{"train.min_epoch_steps=7"}, []string{"4 epochs of 7 steps or more, seed 1"}, "tessera resume"},
		{"limited", 0, []string{"dataset.limit=40", "train.epochs=1"}, []string{"data: first 40 images of bars, 20 % of them held out for validation"}, "tessera resume"},
	} {
		one, err := page.ReadRun(t.Context(), trained(t, c.interrupt, c.sets...), options)
		fatal.If(t, err)
		text := factText(one.Top())
		for _, want := range c.want {
			expect.Contains(t, text, want, c.name, "the page")
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%s: the page says %q:\n%s", c.name, c.never, text)
		}
	}
}
