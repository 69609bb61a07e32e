// Package team spreads work over processors. A [Team] is a fixed number of goroutines that do one job together, again and
// again, with barriers; [For] spreads independent ranges over as many goroutines as Go may use. Both return when the work
// is done, and a panic on any of their goroutines becomes one on the caller's.
package team

import (
	"runtime"
	"sync"
)

// Team is a fixed number of goroutines that work on one job together: the caller and Threads()-1 workers. Between jobs
// the workers park and use no CPU.
type Team struct {
	threads int
	mu      sync.Mutex // one job at a time
	job     func(thread int)
	gate    barrier // between jobs
	inner   barrier // inside a job
	workers sync.WaitGroup
	closed  bool
	failure failure
}

// New starts a team; threads < 1 means one per CPU. A team of one has no workers.
func New(threads int) *Team {
	if threads < 1 {
		threads = runtime.GOMAXPROCS(0)
	}
	t := &Team{threads: threads}
	t.gate.init(threads)
	t.inner.init(threads)
	for i := 1; i < threads; i++ {
		t.workers.Go(func() { t.worker(i) })
	}
	return t
}

// Threads is the number of goroutines of a job, the caller included.
func (t *Team) Threads() int { return t.threads }

// Close ends the workers and returns when they have ended. Jobs that are given to a closed team are done all the same, by
// goroutines that end with the job.
func (t *Team) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.gate.wait(nil)
		t.workers.Wait()
	}
}

// Do runs f(0), ..., f(Threads()-1) at the same time, f(0) on the caller's goroutine, and returns when all have returned.
// f may call Wait. When a member panics, the others are released from Wait, and Do panics with a [*Panic] once all have
// ended; the team can be used again.
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
		t.gate.wait(nil) // the workers start
		t.work(0)
		t.gate.wait(nil) // all have ended
	}
	t.job = nil
	if t.failure.first.Load() != nil {
		t.inner.mend()
		t.failure.raise()
	}
}

// Wait is a barrier inside a job: it returns when every member has come. The last one to come runs action (which may be
// nil) before any returns. All members must pass equivalent actions.
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

// work does a member's share of the job. A panic must not leave the others at a barrier, nor end the process.
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
