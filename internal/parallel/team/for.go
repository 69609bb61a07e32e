package team

import (
	"runtime"
	"sync"
	"sync/atomic"

	"tessera/internal/panics"
)

// limit is the limit set by Limit; 0 means no limit.
var limit atomic.Int32

// Limit bounds the number of goroutines of every later [For] in this process; n < 1 removes the bound. It is meant for
// a command, which owns its process. A library should not call it. It does not change any result.
func Limit(n int) { limit.Store(int32(max(n, 0))) }

// workers returns the maximum number of goroutines of a For.
func workers() int {
	if n := int(limit.Load()); n > 0 {
		return min(n, runtime.GOMAXPROCS(0))
	}
	return runtime.GOMAXPROCS(0)
}

// For calls f on consecutive ranges [from, to) of at most grain indices that cover [0, n), and returns when all calls
// have returned. It uses at most GOMAXPROCS goroutines (fewer after [Limit]). Ranges always start at multiples of
// grain. Which goroutine takes which range, and when, is unspecified, so f must write only to values of its range. If a
// call panics, no further ranges begin, and For panics with a [*Panic].
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

// Group runs and joins single goroutines. A panic in a goroutine becomes a panic of Wait, so that deferred functions of
// the caller run before the process ends. The zero Group is ready for use.
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

// caught recovers the panic of a goroutine and stores it.
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

// Panic is the value with which a [Team], a [Group] or [For] panics after a goroutine has panicked.
type Panic = panics.Panic

// failure stores the first panic.
type failure struct{ first atomic.Pointer[Panic] }

// set stores a recovered value. A [*Panic] of an inner team is not wrapped again.
func (f *failure) set(cause any) {
	f.first.CompareAndSwap(nil, panics.Of(cause))
}

// raise panics with the stored panic and clears it, if there is one.
func (f *failure) raise() {
	if p := f.first.Swap(nil); p != nil {
		panic(p)
	}
}
