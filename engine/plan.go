package engine

import (
	"errors"
	"fmt"

	"tessera/engine/ir"
	"tessera/kernel"
	"tessera/parallel/collective"
	"tessera/parallel/team"
)

// Plan is a compiled program. It implements [ir.Runner].
type Plan[T ir.Float] struct {
	program    *ir.Module
	module     *module
	team       *team.Team
	phases     []phase
	inputs     []*cell[T]
	parameters [][]T
	taps       []*cell[T]
	gradients  []*cell[T] // nil where there is none
	updates    []*cell[T]
	moved      [][]T // what updates are assigned to
	blocks     []block
	arena      int // elements
	job        func(thread int)
	between    []func() // run by the thread that comes last to a phase
	failure    failure
	group      collective.Group
	sent       []*message[T] // that are complete when the run ends
}

// Backend compiles programs into plans that share one team of goroutines.
type Backend struct {
	Team *team.Team // nil: each plan runs on the goroutine that calls it, alone
	// Group is the processes that run every program together, each on its images of the batch (see package ir/shard); nil:
	// this process alone. All of them run the same programs in the same order; each has its own parameters, which stay equal.
	Group collective.Group
}

// Name implements [ir.Backend].
func (Backend) Name() string { return "engine" }

// WithGroup implements [ir.Backend].
func (b Backend) WithGroup(g collective.Group) (ir.Backend, error) {
	b.Group = g
	return b, nil
}

// Compile implements [ir.Backend].
func (b Backend) Compile(p ir.Program) (ir.Runner[float32], error) {
	if p == nil {
		return nil, errors.New("engine: no program to compile")
	}
	m, err := p.Module()
	if err != nil {
		return nil, err
	}
	return CompileShared[float32](m, b.Team, b.Group)
}

// Compile compiles a program for a team; nil is the goroutine that runs the plan, alone. T must be the precision of the
// program, which [ir.Module.Check] must accept. Plans of one program share the ops that only Gorgonia knows: plans that several
// goroutines run at once each need its own program if such an op keeps a state between calls, as gorgonia.MaxPool2D does. The
// programs of [graph.Model.Program] have separate ops.
func Compile[T ir.Float](program *ir.Module, members *team.Team) (*Plan[T], error) {
	return compile[T](program, members, nil)
}

func compile[T ir.Float](program *ir.Module, members *team.Team, group collective.Group) (*Plan[T], error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if program == nil {
		return nil, errors.New("engine: no program to compile")
	}
	if members == nil {
		members = team.New(1) // which has no goroutines that would have to end
	}
	if want := ir.DtypeOf[T](); want != program.Dtype {
		return nil, fmt.Errorf("engine: program is %v, plan is %v", program.Dtype, want)
	}
	if err := program.Check(); err != nil {
		return nil, err
	}
	if group == nil && program.Collective() {
		return nil, errors.New("engine: the program is one process's part: run it with the group of its processes")
	}
	m := newModule(program)
	optimise[T](m)
	divide(m, members.Threads())
	plan := &Plan[T]{program: program, module: m, team: members, group: group}
	c := &compiler[T]{plan: plan, kernels: newKernels(kernelSet[T]()), cells: map[*ir.Value]*cell[T]{}, boxes: map[*ir.Value]*any{},
		over: map[*ir.Value]*ir.Value{}, scratch: newScratch[T](members.Threads())}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return plan, nil
}

// mostRounds bounds the number of times that the passes run. Models need a few; rules that undo each other
// would never settle.
const mostRounds = 100

// optimise runs the passes on values until none changes anything.
func optimise[T ir.Float](m *module) {
	simplify[T](m)
	settle(m)
	merge(m)
}

// simplify is the passes without those that give memory to values.
func simplify[T ir.Float](m *module) {
	for range mostRounds {
		folded, merged, rewritten := fold[T](m), merge(m), rewrite[T](m)
		if !folded && !merged && !rewritten {
			break
		}
	}
	fold[T](m)
}
