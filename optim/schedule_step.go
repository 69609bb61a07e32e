package optim

import "math"

// Step reduces the learning rate at regular intervals of several epochs: the multiplier is factor^floor(epoch/epochs).
// It is constant within an epoch. It equals PyTorch's StepLR with step_size = epochs and gamma = factor.
type Step struct {
	Epochs int     `toml:"epochs" want:"> 0" doc:"number of epochs between two steps"`
	Ratio  float64 `toml:"factor" want:"in (0,1]" doc:"factor of the learning rate at each step"`
}

func init() {
	Schedules.Register("step", "factor^floor(epoch/epochs)", func() Schedule { return &Step{Epochs: 30, Ratio: 0.1} })
}

func (s *Step) Factor(epoch, _ float64) float64 {
	return math.Pow(s.Ratio, math.Floor(epoch/float64(s.Epochs)))
}
