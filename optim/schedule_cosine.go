package optim

import "math"

// Cosine reduces the learning rate along half a cosine over the run. The factor changes at every step:
//
//	final + (1-final) * (1 + cos(pi * epoch/epochs)) / 2
//
// It starts at 1 and stays at final after the end of the run. Source: Loshchilov and Hutter, SGDR, 2017, without
// restarts. It equals PyTorch's CosineAnnealingLR with T_max = epochs and eta_min = final * learning_rate.
type Cosine struct {
	Final float64 `toml:"final" want:"in [0,1]" doc:"final learning rate as a fraction of the base rate"`
}

func init() {
	Schedules.Register("cosine", "half a cosine over the run, from 1 to final", func() Schedule { return &Cosine{} })
}

func (s *Cosine) Factor(epoch, epochs float64) float64 {
	if epoch >= epochs {
		return s.Final
	}
	return s.Final + (1-s.Final)*(1+math.Cos(math.Pi*epoch/epochs))/2
}
