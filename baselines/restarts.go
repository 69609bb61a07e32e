package baselines

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/internal/random"
	"tessera/metrics"
	"tessera/part"
)

// restarted fits a method several times, each time to its end from another random start, and keeps the fit with the least
// objective. The first start is that of a single fit with the same seed. Iterations are counted over all fits, and the
// objective reported is the least so far. Until the last fit has ended the model codes with the present one.
type restarted struct {
	Model
	one      func(seed uint64) (Model, error)
	seed     uint64
	restarts int
	images   Images

	restart int     // of the present fit, from 0; restarts when all have ended
	before  int     // iterations outside of the present fit
	least   float64 // objective of kept
	kept    State   // of the best fit that has ended, unless that is the present one
}

// The names of the numbers that are saved in addition to the state of the present fit, and the prefix of the best fit's names.
const (
	restartName = "restart"
	beforeName  = "before"
	leastName   = "least"
	keptPrefix  = "kept/"
)

// newRestarted returns a model of one, or of several where there are restarts.
func newRestarted(restarts int, seed uint64, one func(seed uint64) (Model, error)) (Model, error) {
	m, err := one(seed)
	if err != nil || restarts <= 1 {
		return m, err
	}
	return &restarted{Model: m, one: one, seed: seed, restarts: restarts}, nil
}

// checkRestarts refuses restarts of a start that does not depend on the seed.
func checkRestarts(restarts int, init string) error {
	if restarts > 1 && init != "random" {
		return part.KeyErrorf("restarts", `got %d, but every fit from init = %q is the same: want 1, or init = "random"`, restarts, init)
	}
	return nil
}

// mostIterations is the number of iterations of all restarts together, at most the largest int.
func mostIterations(iterations, restarts int) int {
	if restarts > 1 && iterations > math.MaxInt/restarts {
		return math.MaxInt
	}
	return iterations * max(restarts, 1)
}

// fresh makes the present fit a new one.
func (m *restarted) fresh() (err error) {
	seed := m.seed
	if 0 < m.restart && m.restart < m.restarts {
		seed = random.Stream(m.seed, "restart", uint64(m.restart)).Uint64()
	}
	m.Model, err = m.one(seed)
	return err
}

// Begin implements [Model].
func (m *restarted) Begin(ctx context.Context, images Images) error {
	m.images = images
	return m.Model.Begin(ctx, images)
}

// Step implements [Model].
func (m *restarted) Step(ctx context.Context) (Progress, error) {
	p, err := m.Model.Step(ctx)
	if err != nil {
		return p, err
	}
	own := p.Iteration
	p.Iteration += m.before
	if m.kept.Tensors != nil && m.least <= p.Objective {
		p.Objective = m.least
	}
	if p.Done && m.restart < m.restarts {
		p.Done, err = m.next(context.WithoutCancel(ctx), p, own)
	}
	return p, err
}

// next ends the present fit, of that many iterations, and begins another one, or, after the last, returns to the best.
func (m *restarted) next(ctx context.Context, p Progress, own int) (done bool, err error) {
	if m.kept.Tensors == nil || p.Objective < m.least {
		m.kept, m.least = cloneState(m.Model.State()), p.Objective
	}
	m.restart++
	m.before += own
	done = m.restart == m.restarts
	if err := m.fresh(); err != nil {
		return done, err
	}
	if done {
		if err := m.Model.Restore(m.kept); err != nil {
			return done, err
		}
		m.before -= int(m.kept.Numbers["iteration"])
		m.kept = State{}
	}
	return done, m.Model.Begin(ctx, m.images)
}

// cloneState copies a state that must outlive the next step.
func cloneState(s State) State {
	c := State{map[string]Tensor{}, maps.Clone(s.Numbers)}
	for name, t := range s.Tensors {
		c.Tensors[name] = Tensor{slices.Clone(t.Shape), slices.Clone(t.Values)}
	}
	return c
}

// State implements [Model].
func (m *restarted) State() State {
	present := m.Model.State()
	s := State{maps.Clone(present.Tensors), maps.Clone(present.Numbers)}
	s.Numbers[restartName], s.Numbers[beforeName], s.Numbers[leastName] = float64(m.restart), float64(m.before), m.least
	for name, t := range m.kept.Tensors {
		s.Tensors[keptPrefix+name] = t
	}
	for name, v := range m.kept.Numbers {
		s.Numbers[keptPrefix+name] = v
	}
	return s
}

// Restore implements [Model].
func (m *restarted) Restore(s State) error {
	var restart, before float64
	if err := s.numbers(map[string]*float64{restartName: &restart, beforeName: &before, leastName: &m.least}); err != nil {
		return err
	}
	m.restart, m.before = int(restart), int(before)
	if m.restart > 0 && m.restart < m.restarts { // a damaged state must not be found at the end of the fit
		kept := State{unprefixed(s.Tensors), unprefixed(s.Numbers)}
		if err := m.Model.Restore(kept); err != nil {
			return err
		}
		m.kept = kept
	}
	if err := m.fresh(); err != nil {
		return err
	}
	return m.Model.Restore(s)
}

// unprefixed returns the part of a state that belongs to the best fit.
func unprefixed[T any](all map[string]T) map[string]T {
	kept := map[string]T{}
	for name, v := range all {
		if own, ok := strings.CutPrefix(name, keptPrefix); ok {
			kept[own] = v
		}
	}
	return kept
}

// Unwrap returns the present fit, or the best one in the end.
func (m *restarted) Unwrap() metrics.Coder { return m.Model }
