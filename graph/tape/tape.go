// Package tape runs programs on Gorgonia's TapeMachine. It is the reference back end: slow, but all arithmetic is Gorgonia's
// own.
package tape

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/collective"
)

// Backend compiles programs for the TapeMachine.
type Backend struct{}

func (Backend) Name() string { return "tape" }

// WithGroup implements [ir.Backend]. It always returns an error.
func (Backend) WithGroup(collective.Group) (ir.Backend, error) {
	return nil, errors.New("tape: a tape runs in one process")
}

// Compile implements [ir.Backend]. The program must be a [graph.Program], because a tape runs its Gorgonia graph.
func (Backend) Compile(p ir.Program) (ir.Runner[float32], error) {
	of, ok := p.(*graph.Program)
	if !ok {
		return nil, fmt.Errorf("tape: cannot compile a program of type %T, want a *graph.Program", p)
	}
	return Compile[float32](of)
}

// runner is one program on a TapeMachine.
type runner[T ir.Float] struct {
	program    *graph.Program
	machine    gorgonia.VM
	parameters [][]T            // memory of the parameters' nodes
	taps       []gorgonia.Value // written by gorgonia.Read, because later instructions overwrite the values of inner nodes
	gradients  []gorgonia.Value
	updates    []gorgonia.Value
	updated    [][]T // parameters to which updates are assigned
}

// Compile compiles p for the TapeMachine. It adds reading nodes to the graph of p, so a program can be compiled only
// once. T must be the precision of the program.
func Compile[T ir.Float](p *graph.Program) (ir.Runner[T], error) {
	if err := kernel.Err(); err != nil { // the tape uses no kernels, but the user has requested a library or instruction set that cannot be used
		return nil, fmt.Errorf("tape: %w", err)
	}
	if p == nil {
		return nil, errors.New("tape: no program to compile")
	}
	if have, err := fromgraph.Dtype(p.Dtype); err != nil || have != ir.DtypeOf[T]() {
		return nil, fmt.Errorf("tape: precision: got a program in %v, want %v", p.Dtype, ir.DtypeOf[T]())
	}
	r := &runner[T]{program: p,
		parameters: make([][]T, len(p.Parameters)),
		taps:       make([]gorgonia.Value, len(p.Taps)),
		gradients:  make([]gorgonia.Value, len(p.Parameters)),
		updates:    make([]gorgonia.Value, len(p.Updates)),
	}
	for i, tap := range p.Taps {
		gorgonia.Read(tap.Node, &r.taps[i])
	}
	for i, b := range p.Parameters {
		r.parameters[i] = ir.ParameterValues[T](b.Data)
		if err := let(b.Node, b.Shape, r.parameters[i]); err != nil {
			return nil, fmt.Errorf("tape: %s: %w", b.Path, err)
		}
		if b.Gradient != nil {
			gorgonia.Read(b.Gradient, &r.gradients[i])
		}
	}
	for i, u := range p.Updates {
		gorgonia.Read(u.Node, &r.updates[i])
		of := p.IndexOf(u.Parameter)
		if of < 0 {
			return nil, fmt.Errorf("tape: update of %s, which the program does not list", u.Parameter.Path)
		}
		r.updated = append(r.updated, r.parameters[of])
	}
	r.machine = gorgonia.NewTapeMachine(p.Graph)
	return r, nil
}

// let binds values to a leaf without copying them.
func let[T ir.Float](n *gorgonia.Node, shape []int, values []T) error {
	if len(shape) == 0 {
		return gorgonia.Let(n, values[0])
	}
	return gorgonia.Let(n, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values)))
}

func (r *runner[T]) Bind(i int, values []T) error {
	in := r.program.Inputs[i]
	if want := in.Node.Shape().TotalSize(); len(values) != want {
		return fmt.Errorf("tape: %s: got %d values, want %d", in.Name, len(values), want)
	}
	if err := let(in.Node, in.Shape, values); err != nil {
		return fmt.Errorf("tape: %s: %w", in.Name, err)
	}
	return nil
}

func (r *runner[T]) Run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tape: %v", p)
		}
	}()
	r.machine.Reset() // without a reset, RunAll does nothing
	for i, b := range r.program.Parameters {
		if len(b.Shape) == 0 { // scalars are bound by value, so they must be bound again
			if err := let(b.Node, nil, r.parameters[i]); err != nil {
				return fmt.Errorf("tape: %s: %w", b.Path, err)
			}
		}
	}
	if err := r.machine.RunAll(); err != nil {
		return fmt.Errorf("tape: %w", err)
	}
	for i, u := range r.updates {
		copy(r.updated[i], flat[T](u))
	}
	return nil
}

// flat returns the elements of a value, nil if they are not of type T.
func flat[T ir.Float](v gorgonia.Value) []T {
	values, err := fromgraph.Elements[T](v)
	if err != nil {
		return nil
	}
	return values
}

func (r *runner[T]) Tap(i int) []T { return flat[T](r.taps[i]) }

func (r *runner[T]) Parameter(i int) []T { return r.parameters[i] }

func (r *runner[T]) Gradient(i int) []T {
	if r.gradients[i] == nil {
		return nil
	}
	return flat[T](r.gradients[i])
}

func (r *runner[T]) Close() error { return r.machine.Close() }
