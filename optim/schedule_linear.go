package optim

// Linear changes the factor linearly over the run, from 1 to final. The factor changes at every step and stays at final
// after the end of the run. It equals PyTorch's LinearLR with total_iters = epochs, start_factor = 1 and end_factor =
// final.
type Linear struct {
	Final float64 `toml:"final" want:">= 0" doc:"final learning rate as a fraction of the base rate"`
}

func init() {
	Schedules.Register("linear", "a line over the run, from 1 to final", func() Schedule { return &Linear{} })
}

func (s *Linear) Factor(epoch, epochs float64) float64 {
	if epoch >= epochs {
		return s.Final
	}
	return 1 + (s.Final-1)*epoch/epochs
}
