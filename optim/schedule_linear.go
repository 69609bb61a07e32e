package optim

// Linear changes the factor linearly over the run, from 1 to final, at every step. After the end of the run it stays at
// final. It is PyTorch's LinearLR over total_iters = epochs, with start_factor = 1 and end_factor = final.
type Linear struct {
	Final float64 `toml:"final" want:">= 0" doc:"final learning rate as a fraction of the base rate"`
}

func init() {
	Schedules.Register("linear", "a line over the run, from 1 to final", func() Schedule { return &Linear{} })
}

// Factor implements [Schedule].
func (s *Linear) Factor(epoch, epochs float64) float64 {
	if epoch >= epochs {
		return s.Final
	}
	return 1 + (s.Final-1)*epoch/epochs
}
