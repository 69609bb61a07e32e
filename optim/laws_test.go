package optim_test

import (
	"testing"

	"tessera/internal/laws"
	"tessera/optim"
)

func TestEveryOptimizerObeysTheLaws(t *testing.T) {
	for _, e := range optim.Registry.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Optimizer, e.New) })
	}
}

func TestOptimizersObeyTheLawsWithOtherSettings(t *testing.T) {
	for name, fresh := range map[string]func() optim.Optimizer{
		"sgd with momentum": func() optim.Optimizer { return &optim.SGD{Rate: 0.01, Momentum: 0.9} },
		"sgd with nesterov": func() optim.Optimizer {
			return &optim.SGD{Rate: 0.01, Momentum: 0.9, Nesterov: true, WeightDecay: 0.1}
		},
		"rmsprop with momentum": func() optim.Optimizer {
			return &optim.RMSProp{Rate: 1e-3, Rho: 0.9, Epsilon: 1e-8, Momentum: 0.5}
		},
		"adam with weight decay": func() optim.Optimizer {
			return &optim.Adam{Rate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1}
		},
	} {
		t.Run(name, func(t *testing.T) { laws.Check(t, laws.Optimizer, fresh) })
	}
}

func TestEveryScheduleObeysTheLaws(t *testing.T) {
	for _, e := range optim.Schedules.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Schedule, e.New) })
	}
}
