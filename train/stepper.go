package train

import (
	"errors"
	"math"
	"slices"

	"tessera/config"
	"tessera/constraints"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/hugepages"
	"tessera/optim"
	"tessera/team"
)

// stepper moves the trainable parameters and projects them: clip, optimizer, constraints.
//
// Parameters are cut into chunks. A thread does everything that is done element by element to one chunk while it is in
// its cache: the update, the check that it is finite, the constraints that look at single elements. Constraints on whole
// parameters follow. The chunks and the order of all sums are fixed, so that the number of threads changes no bit.
type stepper struct {
	optimizer optim.Rule // nil for a search, which moves parameters by itself
	clipNorm  float64
	team      *team.Team
	moved     []*moved
	chunks    []chunk
	projected []*moved    // those with constraints on the whole of them
	squares   []float64   // per chunk: the sum of its gradient's squares
	scratch   [][]float32 // per thread: a clipped gradient; a gradient itself may be shared by two parameters
	bad       []bool      // per thread: met a value that is not finite
	panicked  []error     // per thread: what a part of a user's own did
	large     bool        // more than the caches keep
	queues    []queue     // per thread: the chunks that it moves, unless another is done sooner

	views     []*hooks.Parameter // all parameters of the model, as hooks see them
	pointwise []func(p *hooks.Parameter, values []float32, from int)
	watching  []func(p *hooks.Parameter, values []float32, from int, scratch []float32)

	gradients [][]float32 // of this step
	rate      float64
	factor    float64
	step      int

	beside func(thread int) // done in the same pass as the update; may be nil

	sum, update, project func(thread int) // bound once: a method value allocates
}

// moved is one trainable parameter.
type moved struct {
	*hooks.Parameter
	follows [][]float32 // what hooks keep of it
	// Constraints keep their declared order: pointwise ones before the first that is not are fused with the update.
	fused []constraints.Constraint
	whole []constraints.Constraint
}

// newStepper returns the stepper of a model, its optimizer state all zero.
func newStepper(m *graph.Model, team *team.Team) *stepper {
	rule, _ := m.Spec.Optimizer.Optimizer.(optim.Rule)
	s := &stepper{optimizer: rule, clipNorm: m.Spec.Optimizer.ClipNorm, team: team}
	for i, p := range m.Parameters {
		view := &hooks.Parameter{Index: i, Path: p.Path, Shape: p.Shape, Data: p.Data, Trainable: p.Trainable, Frozen: p.Frozen,
			Started: m.Spec.Start != nil && config.MatchPath(m.Spec.Start.On, p.Path)}
		if s.views = append(s.views, view); p.Trainable {
			s.add(view, m.Spec.Constraints, m.Layout)
		}
	}
	bytes := 0
	for _, m := range s.moved {
		bytes += 4 * len(m.Data) * (2 + len(m.State))
	}
	s.large = bytes > large
	s.squares = make([]float64, len(s.chunks))
	s.bad = make([]bool, team.Threads())
	s.panicked = make([]error, team.Threads())
	s.scratch = make([][]float32, team.Threads())
	for i := range s.scratch {
		s.scratch[i] = make([]float32, optim.NormBlock)
	}
	s.deal()
	s.sum, s.update, s.project = s.guarded(s.sumChunks), s.guarded(s.updateChunks), s.guarded(s.projectWhole)
	return s
}

// guarded makes an error of a panic: an optimizer, a constraint or a hook may be a user's own.
func (s *stepper) guarded(work func(thread int)) func(thread int) {
	return func(thread int) {
		s.panicked[thread] = errors.Join(s.panicked[thread], guard("the optimizer, a constraint or a hook", func() error { work(thread); return nil }))
	}
}

// Failed returns why the last step was not done to its end, nil when it was.
func (s *stepper) Failed() error { return errors.Join(s.panicked...) }

// add cuts a parameter into chunks.
func (s *stepper) add(p *hooks.Parameter, declared []config.Constraint, layout *config.Layout) {
	m := &moved{Parameter: p}
	if s.optimizer != nil {
		for range s.optimizer.States() {
			p.State = append(p.State, hugepages.Make[float32](len(p.Data)))
		}
	}
	for _, c := range declared {
		asIs, swapped := constrains(c.On, p.Path, layout)
		_, pointwise := c.Constraint.(constraints.Pointwise)
		switch {
		case !asIs && !swapped:
		case pointwise && len(m.whole) == 0:
			m.fused = append(m.fused, c.Constraint)
		case pointwise || asIs:
			m.whole = append(m.whole, c.Constraint)
		default:
			m.whole = append(m.whole, &transposed{of: c.Constraint})
		}
	}
	for from := 0; from < len(p.Data); from += optim.NormBlock {
		c := chunk{of: len(s.moved), from: from, to: min(from+optim.NormBlock, len(p.Data))}
		for _, values := range p.State {
			c.state = append(c.state, values[c.from:c.to])
		}
		s.chunks = append(s.chunks, c)
	}
	if len(m.whole) > 0 {
		s.projected = append(s.projected, m)
	}
	s.moved = append(s.moved, m)
}

// surround makes every step call what these hooks do with single elements.
func (s *stepper) surround(h around) error {
	return h.each(func(a *attached) error {
		if a.Active.Project != nil {
			s.pointwise = append(s.pointwise, a.Active.Project)
		}
		if a.Moved != nil {
			s.watching = append(s.watching, a.Moved)
		}
		for _, m := range s.moved {
			if values := a.Follows(m.Parameter); values != nil {
				m.follows = append(m.follows, values)
			}
		}
		return nil
	})
}

// Project applies every constraint to every parameter, as before the first step, and then what hooks project.
func (s *stepper) Project() {
	for _, m := range s.moved {
		s.projectValues(m, m.Data)
	}
}

// projectOne does the same to one parameter; one that is not trained is not projected.
func (s *stepper) projectOne(p *hooks.Parameter) {
	for _, m := range s.moved {
		if m.Parameter == p {
			s.projectValues(m, m.Data)
		}
	}
}

// projectTwin does the same to a twin of the model.
func (s *stepper) projectTwin(twin *graph.Model) error {
	return guard("a constraint or a hook", func() error {
		for _, m := range s.moved {
			s.projectValues(m, twin.Parameters[m.Index].Data)
		}
		return nil
	})
}

func (s *stepper) projectValues(m *moved, values []float32) {
	m.constrain(values)
	s.pass(m, values, 0)
}

// constrain applies the constraints of a parameter to values of its shape.
func (m *moved) constrain(values []float32) {
	for _, c := range m.fused {
		c.Project(values, m.Shape)
	}
	for _, c := range m.whole {
		c.Project(values, m.Shape)
	}
}

// pass projects a part of a parameter's values as hooks say.
func (s *stepper) pass(m *moved, values []float32, from int) {
	for _, project := range s.pointwise {
		project(m.Parameter, values, from)
	}
}

// tell shows hooks a part of a parameter's values as they are after the step.
func (s *stepper) tell(thread int, m *moved, values []float32, from int) {
	for _, moved := range s.watching {
		moved(m.Parameter, values, from, s.scratch[thread])
	}
}

// Step moves every parameter against its gradient, gradients[i] being that of moved[i] (nil leaves it where it is), and
// projects it. It reports whether every moved value was finite before the projection, which could hide that.
// A step in which a part panicked has moved anything, and [stepper.Failed] tells of it.
func (s *stepper) Step(gradients [][]float32, rate float64, step int) bool {
	s.gradients, s.rate, s.step, s.factor = gradients, rate, step, 1
	if s.clipNorm > 0 {
		s.team.Do(s.sum)
		total := 0.0
		for _, square := range s.squares { // in the order of optim.Norm
			total += square
		}
		s.factor = optim.ClipFactor(math.Sqrt(total), s.clipNorm)
	}
	clear(s.bad)
	for i := range s.queues {
		s.queues[i].begun.Store(0)
	}
	s.team.Do(s.update)
	if len(s.projected) > 0 {
		s.team.Do(s.project)
	}
	return !slices.Contains(s.bad, true)
}
