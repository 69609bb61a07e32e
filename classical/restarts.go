package classical

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/internal/random"
	"tessera/metrics"
)

// restarted fits a method several times, each time completely and from a different random start. The result is the fit with
// the smallest objective. The first fit equals a single fit with the same seed. Iterations are counted over all fits, and the
// reported objective is the smallest so far. Until the last fit has ended, the model encodes with the current fit.
type restarted struct {
	Model
	one      func(seed uint64) Model
	seed     uint64
	restarts int
	images   Images

	restart int     // index of the current fit; restarts if all fits have ended
	before  int     // number of iterations of the other fits
	least   float64 // objective of kept
	kept    State   // state of the best completed fit, unless it is the current one
}

// Names of the numbers that are saved in addition to the state of the current fit, and the prefix of the best fit's names.
const (
	restartName = "restart"
	beforeName  = "before"
	leastName   = "least"
	keptPrefix  = "kept/"
)

// checkRestarts returns an error for restarts if the start does not depend on the seed.
func checkRestarts(restarts int, init string) error {
	if restarts > 1 && init != "random" {
		return part.KeyErrorf("restarts", `got %d, but every fit from init = %q is the same: want 1, or init = "random"`, restarts, init)
	}
	return nil
}

// fresh replaces the current fit by a new one.
func (m *restarted) fresh() {
	seed := m.seed
	if 0 < m.restart && m.restart < m.restarts {
		seed = random.Stream(m.seed, "restart", uint64(m.restart)).Uint64()
	}
	m.Model = m.one(seed)
}

func (m *restarted) Begin(ctx context.Context, images Images) error {
	m.images = images
	return m.Model.Begin(ctx, images)
}

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

// next ends the current fit. It starts another fit or, after the last one, restores the best fit. own is the number of
// iterations of the current fit.
func (m *restarted) next(ctx context.Context, p Progress, own int) (done bool, err error) {
	if m.kept.Tensors == nil || p.Objective < m.least {
		m.kept, m.least = cloneState(m.Model.State()), p.Objective
	}
	m.restart++
	m.before += own
	done = m.restart == m.restarts
	m.fresh()
	if done {
		if err := m.Model.Restore(m.kept); err != nil {
			return done, err
		}
		m.before -= int(m.kept.Numbers["iteration"])
		m.kept = State{}
	}
	return done, m.Model.Begin(ctx, m.images)
}

// cloneState copies a state, so that it stays valid after the next step.
func cloneState(s State) State {
	c := State{map[string]Tensor{}, maps.Clone(s.Numbers)}
	for name, t := range s.Tensors {
		c.Tensors[name] = Tensor{slices.Clone(t.Shape), slices.Clone(t.Values)}
	}
	return c
}

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
	m.fresh()
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

// Unwrap returns the current fit, or at the end the best one.
func (m *restarted) Unwrap() metrics.Coder { return m.Model }
