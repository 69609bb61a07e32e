// Package team distributes work over processors. A [Team] is a fixed number of goroutines that repeatedly run one job
// together, with barriers. [For] distributes independent ranges over at most GOMAXPROCS goroutines. A [Group] joins
// goroutines that are started one by one. All of them return when the work is done, and turn a panic in a goroutine
// into a panic of the caller.
package team

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tessera/internal/machine"
)

// Team is a fixed number of goroutines that work on one job together: the caller and Threads()-1 workers. Between jobs
// the workers park and use no CPU.
type Team struct {
	threads int
	mu      sync.Mutex // held during a job: one job at a time
	job     func(thread int)
	gate    barrier // barrier between jobs
	inner   barrier // barrier inside a job
	workers sync.WaitGroup
	closed  bool
	failure failure
}

// New starts a team. threads < 1 means [machine.Threads]. A team of one thread has no workers.
func New(threads int) *Team {
	if threads < 1 {
		threads = machine.Threads()
	}
	t := &Team{threads: threads}
	t.gate.init(threads)
	t.inner.init(threads)
	for i := 1; i < threads; i++ {
		t.workers.Go(func() { t.worker(i) })
	}
	return t
}

// Threads returns the number of goroutines of a job, including the caller.
func (t *Team) Threads() int { return t.threads }

// Close ends the workers and returns when they have ended. A closed team still runs jobs, on goroutines that end with the job.
func (t *Team) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.gate.wait(nil)
		t.workers.Wait()
	}
}

// Do runs f(0), ..., f(Threads()-1) concurrently, f(0) on the caller's goroutine, and returns when all have returned. f
// may call Wait. If a member panics, the others are released from Wait, and Do panics with a [*Panic] after all have
// ended. The team remains usable.
func (t *Team) Do(f func(thread int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job = f
	if t.closed {
		for i := 1; i < t.threads; i++ {
			t.workers.Go(func() { t.work(i) })
		}
		t.work(0)
		t.workers.Wait()
	} else {
		t.gate.wait(nil) // starts the workers
		t.work(0)
		t.gate.wait(nil) // waits until all workers have ended the job
	}
	t.job = nil
	if t.failure.first.Load() != nil {
		t.inner.mend()
		t.failure.raise()
	}
}

// Wait is a barrier inside a job: it returns when every member has called it. The last member to arrive runs action,
// which may be nil, before any member returns. All members must pass equivalent actions.
func (t *Team) Wait(action func()) { t.inner.wait(action) }

func (t *Team) worker(thread int) {
	for {
		t.gate.wait(nil)
		if t.closed {
			return
		}
		t.work(thread)
		t.gate.wait(nil)
	}
}

// work runs a member's part of the job. It recovers a panic, which must neither leave the others at a barrier nor end
// the process.
func (t *Team) work(thread int) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, released := cause.(broken); !released {
				t.failure.set(cause)
			}
			t.inner.breakUp()
		}
	}()
	t.job(thread)
}

// barrier blocks its members until all have arrived. A member first spins briefly, then yields to other goroutines,
// then parks. On a busy machine a barrier therefore costs a switch of goroutines, not a time slice.
type barrier struct {
	members int32
	arrived atomic.Int32
	round   atomic.Uint32
	parked  atomic.Int32
	broken  atomic.Bool // a member has panicked: no member waits
	mu      sync.Mutex
	wake    sync.Cond
}

// broken is the panic value of a member that a barrier releases because another member has panicked.
type broken struct{}

// The durations of polling. Waking a parked goroutine takes some 50 us, so a member polls for longer than that before
// it parks. Calls of Gosched in between give the processor to other goroutines.
const (
	polls  = 1000                   // reads of the round between two readings of the clock: about a microsecond
	patrol = 200 * time.Microsecond // time until a member parks
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

// pass starts the next round, which releases all waiting members.
func (b *barrier) pass() {
	b.round.Add(1)
	if b.parked.Load() > 0 {
		b.mu.Lock()
		b.wake.Broadcast()
		b.mu.Unlock()
	}
}

// spin polls for the end of the round for a limited time, and reports whether the round has ended.
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

// breakUp releases all members that wait or will arrive, with a panic.
func (b *barrier) breakUp() {
	b.broken.Store(true)
	b.pass()
}

// mend makes a broken barrier usable again. No member may be waiting.
func (b *barrier) mend() {
	b.arrived.Store(0)
	b.broken.Store(false)
}

// The borders of shares are rounded to multiples of shareAlign elements, a cache line of float32, so that two threads
// do not write to the same cache line. Shares shorter than shareLong are not rounded, because they would become
// unequal.
const (
	shareAlign = 16
	shareLong  = 128
)

// Share returns the range [from, to) of n rows or columns of a tensor that belongs to a thread. All code that reads and
// writes tensors uses Share, so that the values that a processor has computed are still in its cache.
func Share(n, thread, threads int) (from, to int) {
	return border(n, thread, threads), border(n, thread+1, threads)
}

func border(n, thread, threads int) int {
	at := n * thread / threads
	if thread == threads || n < shareLong*threads {
		return at
	}
	return (at + shareAlign/2) / shareAlign * shareAlign
}

// EvenShare returns the range [from, to) of n items that belongs to a thread. The ranges are as equal as possible.
func EvenShare(n, thread, threads int) (from, to int) {
	return n * thread / threads, n * (thread + 1) / threads
}
