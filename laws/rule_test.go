package laws_test

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/laws"
	"tessera/losses"
	"tessera/optim"
)

// wrongRule is gradient descent with one fault.
type wrongRule struct {
	Rate   float64 `toml:"learning_rate"`
	Decay  float64 `toml:"weight_decay"`
	states int
	update func(w, g []float32, state [][]float32, lr float32)
}

func (o wrongRule) LearningRate() float64 { return o.Rate }
func (o wrongRule) States() int           { return o.states }
func (o wrongRule) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	o.update(w, g, state, float32(lr))
}

func descend(w, g []float32, lr float32) {
	for i := range w {
		w[i] -= lr * g[i]
	}
}

// fixedRate is a rule that has the key learning_rate but does not use it.
type fixedRate struct{ wrongRule }

func (fixedRate) LearningRate() float64 { return 0.01 }

// restless says that elements without gradient rest, but its momentum moves them.
type restless struct{ wrongRule }

func (restless) Rests() bool { return true }

// faulty maps a law to a rule that breaks it.
func faulty() map[string]func() optim.Rule {
	calls := 0
	var sink []float32
	with := func(states int, update func(w, g []float32, state [][]float32, lr float32)) func() optim.Rule {
		return func() optim.Rule { return &wrongRule{Rate: 0.01, states: states, update: update} }
	}
	return map[string]func() optim.Rule{
		"gives the same bits twice": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			calls++
			descend(w, g, lr*float32(calls))
		}),
		"updates parts like the whole": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			norm := float32(optim.Norm(g))
			descend(w, g, lr/(norm+1))
		}),
		"descends on a quadratic": with(0, func(w, g []float32, _ [][]float32, lr float32) { descend(w, g, -lr) }),
		"changes no weight without gradient and decay": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			descend(w, g, lr)
			descend(w, w, lr*0.1)
		}),
		"changes no weight at a learning rate of zero": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			descend(w, g, lr+1e-4)
		}),
		"stays finite at zeros, denormals and large gradients": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			for i := range w {
				w[i] -= lr * g[i] / float32(math.Abs(float64(g[i])))
			}
		}),
		"never writes the gradient": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			for i := range g {
				g[i] *= lr
			}
			descend(w, g, 1)
		}),
		"uses all of its state and no more": with(1, func(w, g []float32, _ [][]float32, lr float32) {
			descend(w, g, lr)
		}),
		"takes its base rate from learning_rate": func() optim.Rule { return &fixedRate{} },
		"leaves elements without gradient alone, if it says that it rests": func() optim.Rule {
			return &restless{wrongRule{Rate: 0.01, states: 1, update: func(w, g []float32, state [][]float32, lr float32) {
				for i := range w {
					state[0][i] = 0.5*state[0][i] + g[i]
				}
				descend(w, state[0], lr)
			}}}
		},
		"does not allocate": with(0, func(w, g []float32, _ [][]float32, lr float32) {
			sink = slices.Clone(g)
			descend(w, sink, lr)
		}),
	}
}

// Every law must fail for some incorrect rule; otherwise the law proves nothing.
func TestWrongRulesBreakTheirLaw(t *testing.T) { mustBreak(t, laws.Rule, faulty()) }

func TestTheRightRuleBreaksNoLaw(t *testing.T) {
	right := func() optim.Rule {
		return &wrongRule{Rate: 0.01, update: func(w, g []float32, _ [][]float32, lr float32) { descend(w, g, lr) }}
	}
	if got := laws.Broken(laws.Rule, right); len(got) > 0 {
		t.Errorf("plain gradient descent breaks %q", got)
	}
}

func TestMissingStateIsReportedNotPanicked(t *testing.T) {
	fresh := func() optim.Rule {
		return &wrongRule{Rate: 0.01, states: 0, update: func(w, _ []float32, state [][]float32, _ float32) { w[0] = state[0][0] }}
	}
	if laws.Rule.Test(fresh)["uses all of its state and no more"] == nil {
		t.Error("a rule that reads more state than it declares obeys")
	}
}

// growing is a schedule whose value depends on the number of its calls.
type growing struct{ calls *int }

func (g growing) Factor(_, _ float64) float64 { *g.calls++; return -float64(*g.calls) }

func TestWrongSchedulesBreakEveryLaw(t *testing.T) {
	calls := 0
	broken := laws.Broken(laws.Schedule, func() optim.Schedule { return growing{&calls} })
	expect.Equal(t, len(broken), len(laws.Schedule.Names()), "a negative schedule that changes by itself breaks", broken, "only")
}

func TestSetFindsKeysAndRefusesOthers(t *testing.T) {
	o := &optim.SGD{}
	if err := laws.Set(o, "momentum", 0.5); err != nil || o.Momentum != 0.5 {
		t.Errorf("momentum is %v after Set, %v", o.Momentum, err)
	}
	expect.AnyError(t, laws.Set(o, "momentun", 0.5), "an unknown key is taken")
	expect.AnyError(t, laws.Set(o, "nesterov", 0.5), "a number is taken as a bool")
}

// weightOf is a schedule that consists of a function.
type weightOf func(epoch float64) float64

func (f weightOf) At(epoch float64) float64 { return f(epoch) }

// Every law must fail for some incorrect weight; otherwise the law proves nothing.
func TestWrongWeightsBreakTheirLaw(t *testing.T) {
	calls := 0.0
	wrong := map[string]func() losses.Weight{}
	for law, w := range map[string]weightOf{
		"is finite and not negative at every epoch and in the end": func(epoch float64) float64 { return max(3-epoch, -1) },
		"depends on nothing but the epoch":                         func(float64) float64 { calls++; return calls },
		"ends where it tends to, or among the values that it keeps taking": func(epoch float64) float64 {
			if math.IsInf(epoch, 1) {
				return 0
			}
			return 1
		},
	} {
		wrong[law] = func() losses.Weight { return w }
	}
	mustBreak(t, laws.Weight, wrong)
	decaying := func() losses.Weight { return weightOf(func(epoch float64) float64 { return 1 / (1 + epoch) }) }
	if broken := laws.Broken(laws.Weight, decaying); len(broken) > 0 {
		t.Errorf("the right weight breaks %q", broken)
	}
	cyclic := func() losses.Weight { // has no limit
		return weightOf(func(epoch float64) float64 {
			if math.IsInf(epoch, 1) {
				return 1
			}
			return min(1, 2*math.Mod(epoch/10, 1))
		})
	}
	if broken := laws.Broken(laws.Weight, cyclic); len(broken) > 0 {
		t.Errorf("a cyclic weight breaks %q", broken)
	}
}

// idle is the optimizer muon with one fault.
type idle struct {
	*optim.Muon
	mistake func(w, g []float32, state [][]float32, lr float64)
}

func (i idle) UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, step int) {
	i.Muon.UpdateWhole(w, g, shape, state, lr, step)
	i.mistake(w, g, state, lr)
}

type takesNothing struct{ *optim.Muon }

func (takesNothing) Takes([]int) bool { return false }

func TestTheLawsOfWholeRulesFindMistakes(t *testing.T) {
	muon := func() *optim.Muon {
		return &optim.Muon{Rate: 0.02, Momentum: 0.95, Nesterov: true, Iterations: 5, OtherRate: 0.001}
	}
	for law, mistake := range map[string]func(w, g []float32, state [][]float32, lr float64){
		"changes no weight at a learning rate of zero":         func(w, _ []float32, _ [][]float32, _ float64) { w[0]++ },
		"stays finite at zeros, denormals and large gradients": func(w, g []float32, _ [][]float32, _ float64) { w[0] /= g[0] },
		"never writes the gradient":                            func(_, g []float32, _ [][]float32, _ float64) { g[0]++ },
		"uses all of its state and no more":                    func(_, _ []float32, state [][]float32, _ float64) { clear(state[0]) },
		"descends on a quadratic":                              func(w, _ []float32, _ [][]float32, lr float64) { w[0] += float32(100 * lr) },
	} {
		if !slices.Contains(laws.Broken(laws.Whole, func() optim.Whole { return idle{muon(), mistake} }), law) {
			t.Errorf("not found: %s", law)
		}
	}
	if broken := laws.Broken(laws.Whole, func() optim.Whole { return takesNothing{muon()} }); !slices.Contains(broken, "takes a shape") {
		t.Errorf("broken by a rule that takes nothing: %q", broken)
	}
}
