package train

import (
	"context"
	"errors"
	"fmt"
)

// ErrPreempted is the cause ([context.WithCancelCause]) of the end of a training that a scheduler stops and starts again later.
var ErrPreempted = errors.New("preempted by a scheduler's signal")

// Interruption is the [ErrInterrupted] of a training that wrote a checkpoint. It is the same on all processes of a group, also if
// the context of only one of them was cancelled.
type Interruption struct {
	Run       string
	Step      int
	Epoch     int    // the current one, from 1
	Preempted bool   // the cause was [ErrPreempted], of one of the processes at least
	Launcher  string // starts as many processes, as in "mpirun -n 2"; "" for one process
}

// Error implements error.
func (e *Interruption) Error() string {
	return fmt.Sprintf("%s: %v at step %d (epoch %d)", e.Run, ErrInterrupted, e.Step, e.Epoch)
}

// Unwrap gives [ErrInterrupted].
func (e *Interruption) Unwrap() error { return ErrInterrupted }

// Why a process stops. The largest reason of all processes is that of all: a preemption, after which a scheduler starts the
// training again.
const (
	goesOn uint64 = iota
	interrupted
	preempted
)

// reason says why a context is done.
func reason(ctx context.Context) uint64 {
	switch {
	case ctx.Err() == nil:
		return goesOn
	case errors.Is(context.Cause(ctx), ErrPreempted):
		return preempted
	}
	return interrupted
}

// preempted reports whether a scheduler stopped one of the processes, which have halted.
func (p *processes) preempted(ctx context.Context) bool {
	if p.group == nil {
		return reason(ctx) == preempted
	}
	return p.halt == preempted
}
