package engine

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph"
	"tessera/kernel"
)

// Plan is a compiled program. It implements [graph.Runner].
type Plan[T graph.Float] struct {
	program    *graph.Program
	module     *module
	team       *Team
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
}

// Backend compiles programs into plans that share one team of goroutines.
type Backend struct{ Team *Team }

// Compile implements [graph.Backend].
func (b Backend) Compile(p *graph.Program) (graph.Runner[float32], error) {
	return Compile[float32](p, b.Team)
}

// Compile compiles p for a team. T must be the precision of the program.
func Compile[T graph.Float](p *graph.Program, team *Team) (*Plan[T], error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if want := dtypeOf[T](); want != p.Dtype {
		return nil, fmt.Errorf("engine: program is %v, plan is %v", p.Dtype, want)
	}
	m, err := lower(p)
	if err != nil {
		return nil, err
	}
	optimise[T](m)
	divide(m, team.Threads())
	plan := &Plan[T]{program: p, module: m, team: team}
	c := &compiler[T]{plan: plan, kernels: newKernels(kernelSet[T]()), cells: map[*value]*cell[T]{}, boxes: map[*value]*gorgonia.Value{},
		over: map[*value]*value{}, scratch: newScratch[T](team.Threads())}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return plan, nil
}

// mostRounds bounds how often the passes run. Models need a handful of rounds; rules that undid each other would else
// never settle.
const mostRounds = 100

// optimise runs the passes on values until none changes anything.
func optimise[T graph.Float](m *module) {
	for range mostRounds {
		folded, merged, rewritten := fold[T](m), merge(m), rewrite[T](m)
		if !folded && !merged && !rewritten {
			break
		}
	}
	fold[T](m)
	settle(m)
	merge(m)
}
