package team

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Panic is what a goroutine of a team, or of [For], panicked with: the caller panics with it.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error is the value's text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Unwrap is the value, where that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// failure keeps the first panic.
type failure struct{ first atomic.Pointer[Panic] }

// set keeps a recovered value; a panic that has crossed one goroutine stays the same.
func (f *failure) set(cause any) {
	p, ok := cause.(*Panic)
	if !ok {
		p = &Panic{cause, debug.Stack()}
	}
	f.first.CompareAndSwap(nil, p)
}

// raise panics with what was kept, and forgets it.
func (f *failure) raise() {
	if p := f.first.Swap(nil); p != nil {
		panic(p)
	}
}
