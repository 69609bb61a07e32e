package optim_test

import (
	"testing"

	"tessera/laws"
	"tessera/optim"
)

func TestEveryOptimizerObeysTheLaws(t *testing.T) {
	for _, e := range optim.Registry.All() {
		t.Run(e.Name, func(t *testing.T) {
			laws.Check(t, laws.Optimizer, e.New)
			switch e.New().(type) {
			case optim.Rule:
				laws.Check(t, laws.Rule, func() optim.Rule { return e.New().(optim.Rule) })
				if _, ok := e.New().(optim.Whole); ok {
					laws.Check(t, laws.Whole, func() optim.Whole { return e.New().(optim.Whole) })
				}
			case optim.Search:
				laws.Check(t, laws.Search, func() optim.Search { return e.New().(optim.Search) })
			}
		})
	}
}

func TestRulesObeyTheLawsWithOtherSettings(t *testing.T) {
	for name, fresh := range map[string]func() optim.Rule{
		"sgd with momentum": func() optim.Rule { return &optim.SGD{Rate: 0.01, Momentum: 0.9} },
		"sgd with nesterov": func() optim.Rule {
			return &optim.SGD{Rate: 0.01, Momentum: 0.9, Nesterov: true, WeightDecay: 0.1}
		},
		"rmsprop with momentum": func() optim.Rule {
			return &optim.RMSProp{Rate: 1e-3, Rho: 0.9, Epsilon: 1e-8, Momentum: 0.5}
		},
		"adam, lazy": func() optim.Rule {
			return &optim.Adam{Rate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Lazy: true}
		},
		"adam with weight decay": func() optim.Rule {
			return &optim.Adam{Rate: 0.01, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.1}
		},
	} {
		t.Run(name, func(t *testing.T) { laws.Check(t, laws.Rule, fresh) })
	}
}

func TestSearchesObeyTheLawsWithOtherSettings(t *testing.T) {
	for name, fresh := range map[string]func() optim.Search{
		"lbfgs that knows one step":    func() optim.Search { return &optim.LBFGS{History: 1, Evaluations: 25} },
		"lbfgs that looks three times": func() optim.Search { return &optim.LBFGS{History: 5, Evaluations: 3} },
	} {
		t.Run(name, func(t *testing.T) { laws.Check(t, laws.Search, fresh) })
	}
}

func TestEveryScheduleObeysTheLaws(t *testing.T) {
	for _, e := range optim.Schedules.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Schedule, e.New) })
	}
}
