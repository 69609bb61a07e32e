package train

import (
	"math"
	"slices"

	"tessera/config"
	"tessera/constraints"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/hugepages"
	"tessera/optim"
	"tessera/parallel/team"
)

// stepper updates and projects the trainable parameters: clip, optimizer, constraints.
//
// Parameters are cut into chunks. While a chunk is in its cache, a thread applies all elementwise operations: the update,
// the check for non-finite values and the elementwise constraints. Constraints on whole parameters follow. The chunks and
// the order of all sums are fixed: the number of threads changes no bit.
type stepper struct {
	optimizer optim.Rule // nil for a full-batch optimizer, which sets the parameters
	rule      string     // name of the optimizer
	clipNorm  float64
	team      *team.Team
	processes *processes // each updates a part of every parameter, see divided.go; nil: all of this one
	moved     []*moved
	chunks    []chunk
	projected []*moved    // those with constraints on whole parameters
	squares   []float64   // per chunk: the sum of its gradient's squares
	scratch   [][]float32 // per thread: a clipped gradient; two parameters may share an unclipped one
	bad       []bool      // per thread: found a non-finite value
	panicked  []error     // per thread: panics of user-defined code
	lost      error       // of the group, in this step
	large     bool        // the weights exceed the caches
	queues    []queue     // per thread: its chunks; a thread that finishes early takes chunks of others

	views     []*hooks.Parameter // all parameters of the model, as hooks see them
	pointwise []func(p *hooks.Parameter, values []float32, from int)
	watching  []func(p *hooks.Parameter, values []float32, from int, scratch []float32)

	gradients [][]float32 // of this step
	rate      float64
	factor    float64
	step      int

	beside func(thread int) // called in the same pass as the update; may be nil

	sum, update, project, follow func(thread int) // bound once: a method value allocates
}

// moved is one trainable parameter.
type moved struct {
	*hooks.Parameter
	follows [][]float32 // values of hooks that follow it

	from, to  int       // the elements that this process updates, of which it has the optimizer's state
	gathering gathering // the elements of all processes, if the optimizer is divided
	// Constraints keep their declared order: pointwise constraints before the first other one are fused with the update.
	fused []constraints.Constraint
	whole []constraints.Constraint
}

// newStepper returns the stepper of a model, its optimizer state all zero and divided among these processes; nil keeps it whole.
func newStepper(m *graph.Model, team *team.Team, among *processes) *stepper {
	rule, _ := m.Spec.Optimizer.Optimizer.(optim.Rule)
	s := &stepper{optimizer: rule, rule: m.Spec.Optimizer.Kind, clipNorm: m.Spec.Optimizer.ClipNorm, team: team, processes: among}
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
	s.sum, s.update, s.project, s.follow = s.guarded(s.sumChunks), s.guarded(s.updateChunks), s.guarded(s.projectWhole), s.guarded(s.followOthers)
	return s
}

// guarded turns a panic into an error: optimizers, constraints and hooks may be user-defined.
func (s *stepper) guarded(work func(thread int)) func(thread int) {
	return func(thread int) {
		if err := guard("the update of the parameters", func() error { work(thread); return nil }); err != nil {
			s.panicked[thread] = err
		}
	}
}

// Failed returns the error of the last step, nil if the step is complete. Of several threads that panicked, the first one counts.
func (s *stepper) Failed() error {
	for _, err := range s.panicked {
		if err != nil {
			return err
		}
	}
	return s.lost
}

// named is a constraint whose panics have its name.
type named struct {
	constraints.Constraint
	name string
}

// Project implements [constraints.Constraint].
func (n named) Project(w []float32, shape []int) {
	defer namePart("constraint", n.name)
	n.Constraint.Project(w, shape)
}

// add splits a parameter into chunks.
func (s *stepper) add(p *hooks.Parameter, declared []config.Constraint, layout *config.Layout) {
	m := &moved{Parameter: p, to: len(p.Data)}
	if s.processes != nil {
		s.divide(m)
	}
	if s.optimizer != nil {
		for range s.optimizer.States() {
			p.State = append(p.State, hugepages.Make[float32](m.to-m.from))
		}
	}
	for _, c := range declared {
		asIs, swapped := constrains(c.On, p.Path, layout)
		_, pointwise := c.Constraint.(constraints.Pointwise)
		c.Constraint = named{c.Constraint, c.Kind}
		switch {
		case !asIs && !swapped:
		case pointwise && len(m.whole) == 0:
			m.fused = append(m.fused, c.Constraint)
		case pointwise || asIs && len(p.Shape) < 3:
			m.whole = append(m.whole, c.Constraint)
		default:
			m.whole = append(m.whole, &transposed{of: c.Constraint})
		}
	}
	for from := 0; from < len(p.Data); from += optim.NormBlock {
		c := chunk{of: len(s.moved), from: from, to: min(from+optim.NormBlock, len(p.Data))}
		if c.from >= m.from && c.to <= m.to {
			c.mine = true
			for _, values := range p.State {
				c.state = append(c.state, values[c.from-m.from:c.to-m.from])
			}
		}
		s.chunks = append(s.chunks, c)
	}
	if len(m.whole) > 0 {
		s.projected = append(s.projected, m)
	}
	s.moved = append(s.moved, m)
}

// surround adds the elementwise functions of these hooks to every step.
func (s *stepper) surround(h around) error {
	return h.each(func(a *attached) error {
		if project := a.Active.Project; project != nil {
			s.pointwise = append(s.pointwise, func(p *hooks.Parameter, values []float32, from int) {
				defer namePart("hook", a.name)
				project(p, values, from)
			})
		}
		if moved := a.AfterUpdate; moved != nil {
			s.watching = append(s.watching, func(p *hooks.Parameter, values []float32, from int, scratch []float32) {
				defer namePart("hook", a.name)
				moved(p, values, from, scratch)
			})
		}
		for _, m := range s.moved {
			if values := a.Average(m.Parameter); values != nil {
				m.follows = append(m.follows, values)
			}
		}
		return nil
	})
}

// Project applies all constraints, then the projections of hooks, to every parameter.
func (s *stepper) Project() {
	for _, m := range s.moved {
		s.projectValues(m, m.Data)
	}
}

// projectOne projects one parameter, if it is trainable.
func (s *stepper) projectOne(p *hooks.Parameter) {
	for _, m := range s.moved {
		if m.Parameter == p {
			s.projectValues(m, m.Data)
		}
	}
}

// projectTwin projects the parameters of a twin of the model.
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

// pass applies the projections of hooks to a range of a parameter's values.
func (s *stepper) pass(m *moved, values []float32, from int) {
	for _, project := range s.pointwise {
		project(m.Parameter, values, from)
	}
}

// tell calls the Moved functions of hooks for a range of a parameter's values after the step.
func (s *stepper) tell(thread int, m *moved, values []float32, from int) {
	for _, moved := range s.watching {
		moved(m.Parameter, values, from, s.scratch[thread])
	}
}

// Step updates every parameter by its gradient and projects it; gradients[i] belongs to moved[i], and a parameter with a
// nil gradient does not change. Step reports whether all updated values were finite before the projection, which could hide
// a non-finite value. After a panic the parameters are undefined, and [stepper.Failed] returns the error.
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
	sound := !slices.Contains(s.bad, true)
	if s.processes != nil {
		if sound, s.lost = s.exchange(sound); s.lost != nil {
			return false
		}
	}
	if len(s.projected) > 0 {
		s.team.Do(s.project)
	}
	return sound
}
