package team

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// barrier lets its members pass when all have come. Members spin briefly, then let other goroutines run, then park:
// with both cores busy elsewhere a barrier costs a switch, not a time slice.
type barrier struct {
	members int32
	arrived atomic.Int32
	round   atomic.Uint32
	parked  atomic.Int32
	broken  atomic.Bool // nobody waits any more
	mu      sync.Mutex
	wake    sync.Cond
}

// broken is what a member panics with that a barrier releases because another one has panicked.
type broken struct{}

// How a member waits. Waking a parked goroutine takes some 50 us, so it looks for longer than that first; a Gosched now
// and then lets others have the processor.
const (
	polls  = 1000                   // of the counter between two readings of the clock: about a microsecond
	patrol = 200 * time.Microsecond // until it parks
)

func (b *barrier) init(members int) {
	b.members = int32(members)
	b.wake.L = &b.mu
}

func (b *barrier) wait(action func()) {
	round := b.round.Load()
	if b.broken.Load() {
		panic(broken{})
	}
	if b.arrived.Add(1) == b.members {
		if action != nil {
			action()
		}
		b.arrived.Store(0)
		b.pass()
		return
	}
	if !b.spin(round) {
		b.park(round)
	}
	if b.broken.Load() {
		panic(broken{})
	}
}

// pass releases all waiting threads.
func (b *barrier) pass() {
	b.round.Add(1)
	if b.parked.Load() > 0 {
		b.mu.Lock()
		b.wake.Broadcast()
		b.mu.Unlock()
	}
}

// spin waits for a while for the round to end, and reports whether it has.
func (b *barrier) spin(round uint32) bool {
	for began := time.Now(); time.Since(began) <= patrol; runtime.Gosched() {
		for range polls {
			if b.round.Load() != round {
				return true
			}
		}
	}
	return false
}

// park sleeps until the round has ended.
func (b *barrier) park(round uint32) {
	b.mu.Lock()
	b.parked.Add(1)
	for b.round.Load() == round {
		b.wake.Wait()
	}
	b.parked.Add(-1)
	b.mu.Unlock()
}

// breakUp releases all that wait, and all that come, with a panic.
func (b *barrier) breakUp() {
	b.broken.Store(true)
	b.pass()
}

// mend makes a barrier usable again at which nobody is.
func (b *barrier) mend() {
	b.arrived.Store(0)
	b.broken.Store(false)
}
