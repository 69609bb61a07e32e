// Package engine compiles a program of package ir into a static, fused plan and runs it. [Compile] returns a [Plan];
// [Backend] compiles all programs of a model.
//
// The passes, in order:
//
//	check        verifies the program (ir.Module.Check); the other passes work on a copy of it (passes.go)
//	fold         constants, sizes, no-op reshapes and repeats
//	merge        common subexpressions
//	rewrite      algebraic rules
//	materialize  memory for views that their consumer cannot read
//	select       products of which the only reader copies a few elements: only those are computed (selected.go)
//	divide       products with trained matrices into parts, one for each thread
//	fuse         elementwise values and their reductions into groups, each one pass over its elements
//	compile      groups into chains of instructions (chain.go), everything else into separate steps (step.go)
//	schedule     steps into phases: inside a phase every thread works on its own rows or columns; between phases there is a barrier
//	bands        steps of a phase that a thread runs on a few rows at a time
//	panels       matrices that are stored thread by thread, because every step shares their columns
//	place        liveness, and one arena of static buffers
//
// Values on which no wanted value depends are never visited: dead code needs no pass.
package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

var _ ir.Backend = (*Backend)(nil)

// Plan is a compiled program. It implements [ir.Runner].
type Plan[T ir.Float] struct {
	program    *ir.Module
	module     *module
	team       *team.Team
	phases     []phase
	inputs     []*cell[T]
	parameters [][]T
	taps       []*cell[T]
	gradients  []*cell[T]    // nil for a parameter without a gradient
	touched    []*scatter[T] // by parameter, nil for a gradient of which all rows may differ from 0
	updates    []*cell[T]
	updated    [][]T // parameters to which updates are assigned
	blocks     []block
	arena      int // size in elements
	job        func(thread int)
	between    []func() // functions between phases; the last thread to reach a phase runs them
	failure    failure
	group      collective.Group
	sent       []*message[T] // messages that complete at the end of the run
}

// Backend compiles programs into plans that share one team of goroutines.
type Backend struct {
	Team *team.Team // goroutines of the plans; nil runs each plan on the calling goroutine
	// Group contains the processes that run every program together, each on its images of the batch (see package
	// ir/shard). Nil means a single process. All processes must run the same programs in the same order. Each process
	// has a copy of the parameters, and the copies stay equal.
	Group collective.Group
}

func (Backend) Name() string { return "engine" }

func (b Backend) WithGroup(g collective.Group) (ir.Backend, error) {
	b.Group = g
	return b, nil
}

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

// Compile compiles a program for a team. With a nil team, the plan runs on the calling goroutine. T must be the
// precision of the program. Compile returns an error if [Module.Check] does.
//
// Plans of one program share the ops that only Gorgonia implements. If such an op has state, as gorgonia.MaxPool2D
// does, goroutines that run plans concurrently need separate programs. The programs of [graph.Model.Program] have
// separate ops.
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
		members = team.New(1) // a team of one starts no goroutines, so it need not be closed
	}
	if want := ir.DtypeOf[T](); want != program.Dtype {
		return nil, fmt.Errorf("engine: precision: got a program in %v, want %v", program.Dtype, want)
	}
	if err := program.Check(); err != nil {
		return nil, err
	}
	if group == nil && program.Collective() {
		return nil, errors.New("engine: the program is one process's part: run it with the group of its processes")
	}
	m := newModule(program)
	optimise[T](m)
	selectElements(m)
	divide(m, members.Threads())
	dropCopies(m)
	plan := &Plan[T]{program: program, module: m, team: members, group: group}
	c := &compiler[T]{plan: plan, kernels: newKernels(kernelSet[T]()), cells: map[*ir.Value]*cell[T]{}, boxes: map[*ir.Value]*any{},
		overwrites: map[*ir.Value]*ir.Value{}, scratch: newScratch[T](members.Threads()),
		mostlyZero: map[*ir.Value]bool{}, scattered: map[*ir.Value]*scatter[T]{}, apart: map[*ir.Value]bool{}}
	if err := c.compile(); err != nil {
		return nil, err
	}
	return plan, nil
}

// maxRounds is the maximum number of repetitions of the passes. Models need a few. Rules that undo each other would
// repeat forever.
const maxRounds = 100

// optimise simplifies the module and materializes the views that their consumers cannot read.
func optimise[T ir.Float](m *module) {
	simplify[T](m)
	materializeViews(m)
	merge(m)
}

// simplify repeats fold, merge and rewrite until none of them changes the module.
func simplify[T ir.Float](m *module) {
	for range maxRounds {
		folded, merged, rewritten := fold[T](m), merge(m), rewrite[T](m)
		if !folded && !merged && !rewritten {
			break
		}
	}
	fold[T](m)
}

// failure records the first error of a run. Foreign ops and user-defined kernels may fail or panic on any thread. The
// other threads must then not wait forever at a barrier.
type failure struct {
	mu    sync.Mutex
	first error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

// guard recovers a panic and records it as the failure. It must be deferred.
func (f *failure) guard() {
	if r := recover(); r != nil {
		f.set(fmt.Errorf("engine: %v", r))
	}
}

// makeJob prepares the work of every thread once, so that a run allocates nothing.
func (c *compiler[T]) makeJob() {
	p := c.plan
	p.between = make([]func(), len(p.phases))
	for i := range p.phases {
		p.between[i] = func() { p.enter(i) }
	}
	p.job = func(thread int) {
		for i := range p.phases {
			if i > 0 {
				p.team.Wait(p.between[i])
			}
			p.share(thread, i)
		}
	}
}

// enter completes the shared steps of the previous phase and runs the serial steps of phase i.
func (p *Plan[T]) enter(i int) {
	defer p.failure.guard()
	if i > 0 {
		for _, st := range p.phases[i-1].shared {
			st.work.finish(p.team.Threads())
		}
	}
	if i < len(p.phases) {
		for _, st := range p.phases[i].serial {
			st.begin(0, 0, st.units)
			st.work.run(0, 0, st.units)
			st.work.finish(1)
		}
	}
}

// share runs a thread's units of the shared steps of phase i.
func (p *Plan[T]) share(thread, i int) {
	defer p.failure.guard()
	for j := range p.phases[i].bands {
		p.phases[i].bands[j].run(thread, p.team.Threads())
	}
}

func (p *Plan[T]) Run() error {
	p.failure.first = nil
	p.enter(0)
	p.team.Do(p.job)
	p.enter(len(p.phases))
	for _, m := range p.sent {
		m.complete()
	}
	if p.failure.first != nil {
		return p.failure.first
	}
	for i, u := range p.updates {
		copy(p.updated[i], u.data)
	}
	return nil
}

func (p *Plan[T]) Bind(i int, values []T) error {
	if want := volume.Of(p.program.Inputs[i].Shape); len(values) != want {
		return fmt.Errorf("engine: %s: got %d values, want %d", p.program.Inputs[i].Name, len(values), want)
	}
	p.inputs[i].data = values
	return nil
}

func (p *Plan[T]) Tap(i int) []T { return p.taps[i].data }

func (p *Plan[T]) Parameter(i int) []T { return p.parameters[i] }

func (p *Plan[T]) Gradient(i int) []T {
	if p.gradients[i] == nil {
		return nil
	}
	return p.gradients[i].data
}

func (p *Plan[T]) Touched(i int) [][]int32 {
	if p.touched[i] == nil {
		return nil
	}
	return p.touched[i].touched
}

// Close implements [ir.Runner]. It does not close the team, which the caller owns.
func (p *Plan[T]) Close() error { return nil }

var (
	_ ir.Runner[float32] = (*Plan[float32])(nil)
	_ ir.Touching        = (*Plan[float32])(nil)
)

// chainName lists the functions of a group, in order.
func chainName(g *group) string {
	names := lists.Map(g.members, func(v *ir.Value) string { return v.Op.String() })
	return strings.Join(names, " ")
}

// String prints the plan: its phases and, for every step, the functions, the shapes of the results, the bytes and the
// FLOPs.
func (p *Plan[T]) String() string {
	var b strings.Builder
	var steps int
	for i, ph := range p.phases {
		fmt.Fprintf(&b, "phase %d\n", i+1)
		for _, st := range ph.serial {
			p.printStep(&b, st, "serial")
		}
		for _, st := range ph.shared {
			p.printStep(&b, st, st.shared())
		}
		steps += len(ph.serial) + len(ph.shared)
	}
	fmt.Fprintf(&b, "%d steps in %d phases, %s, %s of buffers\n", steps, len(p.phases), numeral.Operations(p.Work()), numeral.Bytes(int64(p.arena*p.width())))
	return b.String()
}

// Work returns the floating-point operations of a run. A function, such as an exponential, counts as one.
func (p *Plan[T]) Work() (flops float64) {
	for _, ph := range p.phases {
		for _, st := range slices.Concat(ph.serial, ph.shared) {
			flops += st.flops
		}
	}
	return flops
}

// shared describes the units that threads divide: rows or columns of the result or, for a partial product, columns of
// A.
func (s *step) shared() string {
	if s.columns {
		return fmt.Sprintf("%d columns", s.units)
	}
	return fmt.Sprintf("%d rows", s.units)
}

func (p *Plan[T]) printStep(b *strings.Builder, st *step, how string) {
	var out []string
	elements := 0
	for _, w := range st.writes {
		out = append(out, fmt.Sprint(w.value.Shape))
		elements += volume.Of(w.value.Shape)
	}
	for _, r := range st.reads {
		elements += volume.Of(r.value.Shape)
	}
	fmt.Fprintf(b, "  %-12s %9s %9s  %s → %s\n", how, numeral.Operations(st.flops), numeral.Bytes(int64(elements*p.width())), st.name, strings.Join(out, " "))
}

// width returns the size of an element in bytes.
func (p *Plan[T]) width() int {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return 4
	}
	return 8
}
