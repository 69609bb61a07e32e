package train

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/data/augment"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"

	"gorgonia.org/gorgonia"
)

// faultyPart is a user-defined part that panics in its n-th call, where n = 0 is the first. It can be a part of any kind.
type faultyPart struct{ calls *atomic.Int64 }

func (b faultyPart) call() {
	if b.calls.Add(-1) < 0 {
		panic("out of order")
	}
}

type brokenRule struct {
	*optim.Adam
	faultyPart
}

func (r brokenRule) Update(w, g []float32, state [][]float32, lr float64, step int) { r.call() }

type brokenConstraint struct{ faultyPart }

func (c brokenConstraint) Project([]float32, []int)          { c.call() }
func (brokenConstraint) Violation([]float32, []int) float64  { return 0 }
func (w faultyPart) At(float64) float64                      { w.call(); return 1 }
func (faultyPart) OutputShape(in []int) ([]int, error)       { return in, nil }
func (faultyPart) Parameters([]int) []layers.Parameter       { return nil }
func (b faultyPart) Sample(dst []float32, _ *rand.Rand)      { b.call() }
func (b faultyPart) Prepare([]int) (augment.Change, error)   { return b.change, nil }
func (b faultyPart) change(dst, src []float32, _ *rand.Rand) { b.call() }
func (b faultyPart) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if !s.Training() {
		return x, nil
	}
	return gorgonia.Add(x, s.Noise(b, x.Shape()...))
}

// The first calls happen before the first step; later calls happen on several threads during a step.
func TestAPanicNamesThePartOnce(t *testing.T) {
	const views = "\n[[model.everything.view]]\naugment = [{ kind = \"flip\" }]\n[model.everything.head.projection]\nlayers = [{ kind = \"dense\", units = 4 }]\n" +
		"[[model.everything.loss]]\nkind = \"nt_xent\"\non = \"projection\"\n"
	for want, c := range map[string]struct {
		text  string
		calls []int
		set   func(m *config.Model, b faultyPart)
	}{
		"optimizer adam": {everything, []int{0}, func(m *config.Model, b faultyPart) {
			m.Optimizer.Optimizer = brokenRule{m.Optimizer.Optimizer.(*optim.Adam), b}
		}},
		"constraint nonneg":          {everything, []int{0, 3}, func(m *config.Model, b faultyPart) { m.Constraints[0].Constraint = brokenConstraint{b} }},
		"input weight.kl":            {everything, []int{0, 1}, func(m *config.Model, b faultyPart) { m.Losses[1].Weight = b }},
		"sampler of encoder.0.noise": {everything, []int{0, 9}, func(m *config.Model, b faultyPart) { m.Encoder[0].Layer = b }},
		"augmentation of view 0":     {everything + views, []int{0, 200}, func(m *config.Model, b faultyPart) { m.Views[0].Augment[0] = b }},
		"hook failing":               {everything, []int{0, 3}, func(m *config.Model, b faultyPart) { m.Hooks = map[string]hooks.Hook{"failing": brokenHook{b}} }},
	} {
		for _, calls := range c.calls {
			m := model(t, c.text)
			var left atomic.Int64 // shared by threads
			left.Store(int64(calls))
			c.set(m, faultyPart{&left})
			members := team.New(2)
			err := stepsOf(m, Options{Backend: tape.Backend{}, Team: members})
			members.Close()
			expect.Error(t, err, want+": panicked: out of order", want)
			expect.Equal(t, strings.Count(err.Error(), "out of order"), 1, want)
		}
	}
}

type brokenHook struct{ faultyPart }

func (h brokenHook) Attach(hooks.Training) (*hooks.Active, error) {
	return &hooks.Active{AfterUpdate: func(*hooks.Parameter, []float32, int, []float32) { h.call() }}, nil
}

// stepsOf trains a model for some steps, without a folder.
func stepsOf(m *config.Model, o Options) error {
	s, splits, err := newSession(context.Background(), m, o, nil)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.learner.begin(context.Background(), splits, true); err != nil {
		return err
	}
	for range 12 {
		if err := s.learner.(*network).step(); err != nil {
			return err
		}
	}
	return nil
}

func TestAFailedStepNamesTheRunAndTheStep(t *testing.T) {
	backend := failingBackend{tape.Backend{}}
	out := place(t)
	_, err := Run(context.Background(), model(t, everything), Options{Backend: backend, Out: out})
	if !errors.Is(err, errOutOfOrder) || !strings.HasPrefix(err.Error(), out+": step 1: ") {
		t.Errorf("got %v", err)
	}
}

var errOutOfOrder = errors.New("out of order")

// failingBackend is a back end with programs for training that fail.
type failingBackend struct{ tape.Backend }

func (b failingBackend) Compile(p ir.Program) (ir.Runner[float32], error) {
	r, err := b.Backend.Compile(p)
	for _, binding := range p.(*graph.Program).Parameters {
		if binding.Gradient != nil {
			return failingRunner{r}, err
		}
	}
	return r, err
}

type failingRunner struct{ ir.Runner[float32] }

func (failingRunner) Run() error { return errOutOfOrder }

// countedHook is a hook that counts the hooks that are attached and not closed.
type countedHook struct {
	open *int
	fail error
}

func (c countedHook) Replicated() bool { return false }

func (c countedHook) Attach(hooks.Training) (*hooks.Active, error) {
	*c.open++
	return &hooks.Active{Close: func() error { *c.open--; return nil }}, c.fail
}

func TestASessionThatCannotBeginClosesItsHooks(t *testing.T) {
	open := 0
	m := model(t, everything)
	m.Hooks = map[string]hooks.Hook{"one": countedHook{&open, nil}, "two": countedHook{&open, errOutOfOrder}}
	if _, err := trainNew(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)}); !errors.Is(err, errOutOfOrder) || open != 0 {
		t.Errorf("a hook cannot be attached: %d hooks are open (%v)", open, err)
	}

	opened := [2]int{}
	_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
		members := team.New(1 + o.Group.Rank()) // the processes do not agree
		defer members.Close()
		m := model(t, everything)
		m.Hooks = map[string]hooks.Hook{"one": countedHook{&opened[o.Group.Rank()], nil}}
		o.Team, o.Backend = members, engine.Backend{Team: members}
		_, _, err := newSession(context.Background(), m, o, nil)
		return nil, err
	})
	if errs[0] == nil || errs[1] == nil || opened != [2]int{} {
		t.Errorf("the processes do not agree: %v hooks are open (%v)", opened, errs)
	}
}

// alternating is a part that returns 1 and 0 in turn.
type alternating struct{ values *[]float64 }

func (alternating) At(float64) float64 { return 1 }

func (a alternating) Next(weight, value float64) float64 {
	*a.values = append(*a.values, value)
	return 1 - weight
}

func TestAnAdaptiveWeightOf0StillSeesItsTerm(t *testing.T) {
	for name, backend := range map[string]ir.Backend{"tape": tape.Backend{}, "engine": engine.Backend{}} {
		var values []float64
		m := model(t, everything)
		m.Losses[1].Weight = losses.Weight(alternating{&values})
		fatal.If(t, stepsOf(m, Options{Backend: backend}))
		if len(values) != 12 {
			t.Fatalf("%s: %d values", name, len(values))
		}
		for i, v := range values[1:] {
			if was := values[i]; !(v > was/4 && v < was*4) {
				t.Errorf("%s: step %d: the term is %v, one step earlier %v", name, i+2, v, was)
			}
		}
	}
}

func TestAWeightThatOverflowsIsADivergence(t *testing.T) {
	m := model(t, everything, `loss.1.weight={kind="multiplier",limit=-1e308,rate=1e308}`)
	_, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})
	if diverged, ok := errors.AsType[*Diverged](err); !ok || diverged.Tensor != "weight of loss.kl" || !math.IsInf(diverged.Value, 1) || diverged.Step != 1 {
		t.Errorf("got %v, want a *Diverged", err)
	}
}

func TestImagesThatAreNotFiniteAreRefused(t *testing.T) {
	pixels := make([]float32, 4*64)
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		pixels[70] = float32(bad)
		images, err := data.NewFloats([]int{8, 8}, pixels, nil)
		fatal.If(t, err)
		load := func(context.Context, *config.Dataset) (*data.Set, error) {
			return &data.Set{Name: "mine", Shape: []int{8, 8}, Train: images, Test: images}, nil
		}
		_, err = Run(context.Background(), model(t, everything), Options{Backend: tape.Backend{}, Out: place(t), Load: load})
		if _, ok := errors.AsType[*data.Error](err); !ok || strings.Contains(err.Error(), "learning_rate") {
			t.Errorf("%v: got %v, want a *data.Error", bad, err)
		}
	}
}

type negativeWeight struct{}

func (negativeWeight) At(float64) float64 { return -1 }

func TestANegativeWeightIsNamed(t *testing.T) {
	m := model(t, everything)
	m.Losses[1].Weight = negativeWeight{}
	err := stepsOf(m, Options{Backend: tape.Backend{}, Team: team.New(1)})
	expect.Error(t, err, "weight.kl: got -1, want a weight >= 0")
}
