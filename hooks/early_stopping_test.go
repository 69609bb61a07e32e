package hooks

import (
	"testing"

	"tessera/internal/fatal"
	"tessera/metrics"
)

// A classifier without a decoder has no val_mse: its epochs are compared by the negative log-likelihoods of its heads.
func TestEarlyStoppingComparesAClassifierByItsLikelihood(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string // metrics that rise while the loss falls
		kept int
	}{
		"one head":      {[]string{"val_nll"}, 1},
		"two heads":     {[]string{"val_class.nll", "val_colour.nll"}, 1},
		"an output":     {[]string{"val_mse"}, 1},
		"an objective":  {[]string{"val_loss"}, 1},
		"other metrics": {[]string{"val_accuracy"}, 3},
	} {
		training := newFake(t, []float32{0, 0, 0, 1})
		active, err := (&EarlyStopping{Patience: 1}).Attach(training)
		fatal.If(t, err)
		for epoch := 1; epoch <= 3 && !training.stopped; epoch++ {
			v := metrics.Values{{Name: "loss", Number: float64(4 - epoch)}, {Name: "val_other.nll", Number: 9 - 3*float64(epoch), Missing: "no labels"}}
			for _, key := range c.keys {
				v.Set(key, float64(epoch))
			}
			fatal.If(t, active.EndEpoch(&Epoch{Epoch: epoch, Metrics: v}))
		}
		if got := active.Best().Epoch; got != c.kept || training.stopped != (c.kept == 1) {
			t.Errorf("%s: kept epoch %d, stopped %v; want epoch %d", name, got, training.stopped, c.kept)
		}
	}
}
