package team

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// limit is set by Limit; 0 is no limit.
var limit atomic.Int32

// Limit bounds the number of goroutines of every later [For] of the process; n < 1 removes the bound. It is meant for the command, which
// owns its process; a library should not call it. It changes no result.
func Limit(n int) { limit.Store(int32(max(n, 0))) }

// workers returns the number of goroutines that a For may use.
func workers() int {
	if n := int(limit.Load()); n > 0 {
		return min(n, runtime.GOMAXPROCS(0))
	}
	return runtime.GOMAXPROCS(0)
}

// For calls f on consecutive ranges [from, to) of at most grain indices that cover [0, n), on at most GOMAXPROCS
// goroutines (fewer after [Limit]), and returns when all calls have. Ranges always start at multiples of grain, but which
// goroutine takes which range, and when, is unspecified: f must write only to values of its range. If a call panics, no further
// ranges begin, and For panics with a [*Panic].
func For(n, grain int, f func(from, to int)) {
	grain = max(grain, 1)
	ranges := (n + grain - 1) / grain
	var next atomic.Int64
	var failed failure
	work := func() {
		defer func() {
			if cause := recover(); cause != nil {
				failed.set(cause)
				next.Store(int64(ranges))
			}
		}()
		for {
			from := (int(next.Add(1)) - 1) * grain
			if from >= n {
				return
			}
			f(from, min(from+grain, n))
		}
	}
	if workers := min(workers(), ranges); workers > 1 {
		var wait sync.WaitGroup
		for range workers {
			wait.Go(work)
		}
		wait.Wait()
	} else {
		work()
	}
	failed.raise()
}

// Group joins goroutines that are started one by one. A panic of a goroutine becomes a panic of Wait, so that deferred functions of the
// caller run before the process ends. The zero Group is ready to use.
type Group struct {
	wait    sync.WaitGroup
	failure failure
}

// Go runs f on a new goroutine.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer g.caught()
		f()
	})
}

// caught stores the panic of a goroutine.
func (g *Group) caught() {
	if cause := recover(); cause != nil {
		g.failure.set(cause)
	}
}

// Wait returns when all goroutines have returned. If one of them has panicked, Wait panics with a [*Panic].
func (g *Group) Wait() {
	g.wait.Wait()
	g.failure.raise()
}

// Panic is the panic of a goroutine of a [Team], a [Group] or [For], with which the caller panics.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value's text.
func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Unwrap returns the value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// failure stores the first panic.
type failure struct{ first atomic.Pointer[Panic] }

// set stores a recovered value; a [*Panic] of an inner team is not wrapped again.
func (f *failure) set(cause any) {
	p, ok := cause.(*Panic)
	if !ok {
		p = &Panic{cause, debug.Stack()}
	}
	f.first.CompareAndSwap(nil, p)
}

// raise panics with the stored panic, if there is one, and clears it.
func (f *failure) raise() {
	if p := f.first.Swap(nil); p != nil {
		panic(p)
	}
}
