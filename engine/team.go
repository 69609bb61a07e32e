package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Team is a fixed number of goroutines that work on one job together: the caller and Threads()-1 workers. Between jobs
// the workers park and use no CPU.
type Team struct {
	threads int
	mu      sync.Mutex // one job at a time
	job     func(thread int)
	barrier barrier
	workers sync.WaitGroup
	closed  bool
}

// NewTeam starts a team; threads < 1 means one per CPU.
func NewTeam(threads int) *Team {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	t := &Team{threads: threads}
	t.barrier.members = int32(threads)
	t.barrier.wake.L = &t.barrier.mu
	t.start()
	return t
}

// start begins the workers.
func (t *Team) start() {
	t.closed = false
	for i := 1; i < t.threads; i++ {
		t.workers.Go(func() { t.worker(i) })
	}
}

// Threads is the number of goroutines of a job, the caller included.
func (t *Team) Threads() int { return t.threads }

// Close ends the workers and returns when they have ended. A later job begins them anew.
func (t *Team) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.barrier.wait(nil)
		t.workers.Wait()
	}
}

// Do runs f(0), ..., f(Threads()-1) at the same time and returns when all have returned. f may call Wait.
func (t *Team) Do(f func(thread int)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		t.start()
	}
	t.job = f
	t.barrier.wait(nil) // the workers start
	f(0)
	t.barrier.wait(nil) // all have ended
	t.job = nil
}

// Wait is a barrier inside a job: it returns when every member has come. The last one to come runs action (which may be
// nil) before any returns. All members must pass equivalent actions.
func (t *Team) Wait(action func()) { t.barrier.wait(action) }

func (t *Team) worker(thread int) {
	for {
		t.barrier.wait(nil)
		if t.closed {
			return
		}
		t.job(thread)
		t.barrier.wait(nil)
	}
}

// barrier lets its members pass when all have come. Members spin briefly, then let other goroutines run, then park:
// with both cores busy elsewhere a barrier costs a switch, not a time slice.
type barrier struct {
	members int32
	arrived atomic.Int32
	round   atomic.Uint32
	parked  atomic.Int32
	mu      sync.Mutex
	wake    sync.Cond
}

// How a member waits. Waking a parked goroutine takes some 50 us, so it looks for longer than that first; a Gosched now
// and then lets others have the processor.
const (
	looks  = 1000                   // at the counter between two looks at the clock: about a microsecond
	patrol = 200 * time.Microsecond // until it parks
)

func (b *barrier) wait(action func()) {
	round := b.round.Load()
	if b.arrived.Add(1) == b.members {
		if action != nil {
			action()
		}
		b.arrived.Store(0)
		b.round.Add(1)
		if b.parked.Load() > 0 {
			b.mu.Lock()
			b.wake.Broadcast()
			b.mu.Unlock()
		}
		return
	}
	for began := time.Now(); ; {
		for range looks {
			if b.round.Load() != round {
				return
			}
		}
		if time.Since(began) > patrol {
			break
		}
		runtime.Gosched()
	}
	b.mu.Lock()
	b.parked.Add(1)
	for b.round.Load() == round {
		b.wake.Wait()
	}
	b.parked.Add(-1)
	b.mu.Unlock()
}
