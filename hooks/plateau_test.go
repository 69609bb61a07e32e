package hooks

import (
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// The rates are those of PyTorch 1.13: ReduceLROnPlateau(factor=0.5, patience=2, threshold=0.01, cooldown=1, min_lr=0.2).
// After every epoch the hook is saved and restored into a new one.
func TestPlateauLowersTheRateAsPyTorchDoes(t *testing.T) {
	errors := []float64{1.0, 0.9, 0.895, 0.893, 0.892, 0.891, 0.5, 0.499, 0.498, 0.497, 0.496, 0.495, 0.494, 0.493, 0.492, 0.3, 0.31, 0.32, 0.33, 0.34, 0.35}
	want := []float64{1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2}
	declared := &Plateau{Factor: 0.5, Patience: 2, Threshold: 0.01, Cooldown: 1, Smallest: 0.2}
	for _, key := range []string{"val_mse", "loss"} {
		state := &State{}
		for i, value := range errors {
			active, err := declared.Attach(newFake(t, []float32{0, 0, 0, 1}))
			fatal.If(t, err)
			fatal.If(t, active.Restore(state))
			fatal.If(t, active.EndEpoch(&Epoch{Epoch: i + 1, Metrics: metrics.Values{{Name: key, Number: value}}}))
			expect.Near(t, active.Rate(), want[i], 1e-12, key, "epoch", i+1)
			state = &State{}
			active.Save(state)
		}
	}
}

// Below 0 too, a worse value is no improvement.
func TestAWorseNegativeErrorIsNoImprovement(t *testing.T) {
	active, err := (&Plateau{Factor: 0.5, Patience: 1, Threshold: 0.01}).Attach(newFake(t, []float32{0, 0, 0, 1}))
	fatal.If(t, err)
	for i, value := range []float64{-10, -9.99, -9.98} {
		fatal.If(t, active.EndEpoch(&Epoch{Epoch: i + 1, Metrics: metrics.Values{{Name: "loss", Number: value}}}))
	}
	expect.Equal(t, active.Rate(), 0.5, "after two worse epochs the factor of the rate")
}
