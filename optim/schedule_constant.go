package optim

// Constant keeps the learning rate constant: the factor is 1.
type Constant struct{}

func init() {
	Schedules.Register("constant", "constant learning rate", func() Schedule { return &Constant{} })
}

func (Constant) Factor(_, _ float64) float64 { return 1 }
