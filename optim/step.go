package optim

import "math"

// Step lowers the rate in stairs: factor^floor(epoch/epochs), constant within an epoch. PyTorch's StepLR, with epochs
// for its step_size and factor for its gamma.
type Step struct {
	Epochs int     `toml:"epochs" want:"> 0" doc:"length of a stair"`
	Ratio  float64 `toml:"factor" want:"in (0,1]" doc:"what each stair multiplies the rate by"`
}

func init() {
	Schedules.Register("step", "factor^floor(epoch/epochs): stairs", func() Schedule { return &Step{Epochs: 30, Ratio: 0.1} })
}

// Factor implements [Schedule].
func (s *Step) Factor(epoch, _ float64) float64 {
	return math.Pow(s.Ratio, math.Floor(epoch/float64(s.Epochs)))
}
