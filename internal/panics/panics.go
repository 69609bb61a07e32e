// Package panics keeps the stack of a recovered panic: parts may be user-defined, and the stack says where their fault is.
package panics

import (
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
)

// Panic is a recovered panic as an error.
type Panic struct {
	Value any
	Stack []byte // stack of the goroutine that panicked

	place string // source line of an error of the run-time system, whose text does not say what it is about
}

// Of returns the panic with the value cause, the result of recover, for the deferred function that has recovered it. A [*Panic],
// which was recovered before, stays as it is.
func Of(cause any) *Panic {
	if p, ok := cause.(*Panic); ok {
		return p
	}
	p := &Panic{Value: cause, Stack: debug.Stack()}
	if _, ok := cause.(runtime.Error); ok {
		p.place = origin()
	}
	return p
}

// origin returns the source line that panicked, as "dense.go:30".
func origin() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	panicked := false
	for {
		f, more := frames.Next()
		switch system := strings.HasPrefix(f.Function, "runtime."); {
		case system:
			panicked = true
		case panicked:
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// Error returns the text of the value, and of an error of the run-time system the line of the source.
func (p *Panic) Error() string {
	if p.place == "" {
		return fmt.Sprint(p.Value)
	}
	return fmt.Sprintf("%v (%s)", p.Value, p.place)
}

func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
