package optim

import "math"

// OneCycle raises the factor along half a cosine from start to 1 during the first part of the run. Then it lowers the
// factor along half a cosine to final. The base learning rate is the maximum. Source: Smith and Topin,
// Super-convergence, 2018. It equals PyTorch's OneCycleLR with its defaults, where start = 1/div_factor and final =
// start/final_div_factor, but momentum stays constant.
type OneCycle struct {
	Rise  float64 `toml:"rise" want:"in [0,1)" doc:"part of the run in which the rate rises"`
	Start float64 `toml:"start" want:"in [0,1]" doc:"first learning rate as a fraction of the base rate"`
	Final float64 `toml:"final" want:"in [0,1]" doc:"final learning rate as a fraction of the base rate"`
}

func init() {
	Schedules.Register("one_cycle", "rises from start to 1, then falls to final, along half cosines", func() Schedule {
		return &OneCycle{Rise: 0.3, Start: 0.04, Final: 4e-6}
	})
}

func (s *OneCycle) Factor(epoch, epochs float64) float64 {
	top := s.Rise * epochs
	switch {
	case epoch >= epochs:
		return s.Final
	case epoch < top:
		return between(s.Start, 1, epoch/top)
	}
	return between(1, s.Final, (epoch-top)/(epochs-top))
}

// between interpolates from a to b along half a cosine; t is in [0,1].
func between(a, b, t float64) float64 { return b + (a-b)*(1+math.Cos(math.Pi*t))/2 }
