package optim

import "math"

// Exponential reduces the learning rate by the same ratio in every epoch: the multiplier is factor^epoch. It changes at
// every step. At the beginning of an epoch it equals PyTorch's ExponentialLR with gamma = factor. The default, 0.99,
// reduces the rate to 0.37 of the base rate after 100 epochs.
type Exponential struct {
	Ratio float64 `toml:"factor" want:"in (0,1]" doc:"factor of the learning rate per epoch"`
}

func init() {
	Schedules.Register("exponential", "factor^epoch, applied at every step",
		func() Schedule { return &Exponential{Ratio: 0.99} })
}

func (s *Exponential) Factor(epoch, _ float64) float64 { return math.Pow(s.Ratio, epoch) }
