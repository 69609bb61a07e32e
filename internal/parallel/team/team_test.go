package team

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tessera/internal/expect"
)

func TestEveryMemberOfATeamWorksOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		team := New(threads)
		for range 200 {
			count := make([]atomic.Int32, threads)
			team.Do(func(thread int) { count[thread].Add(1) })
			for i := range count {
				if n := count[i].Load(); n != 1 {
					t.Fatalf("thread %d of %d ran %d times", i, threads, n)
				}
			}
		}
		team.Close()
	}
}

func TestAClosedTeamWorksAgain(t *testing.T) {
	team := New(3)
	for range 20 {
		team.Close()
		team.Close()
		var n atomic.Int32
		team.Do(func(int) { n.Add(1); team.Wait(nil); n.Add(1) })
		if n.Load() != 6 {
			t.Fatalf("the job was done %d times, want 6", n.Load())
		}
	}
	team.Close()
}

func TestNobodyPassesABarrierEarly(t *testing.T) {
	team := New(3)
	defer team.Close()
	var arrived, actions atomic.Int32
	team.Do(func(int) {
		for round := int32(1); round <= 500; round++ {
			arrived.Add(1)
			team.Wait(func() {
				expect.Equal(t, arrived.Load(), 3*round, "round", round)
				actions.Add(1)
			})
			if actions.Load() < round {
				t.Errorf("round %d: passed before the action", round)
			}
			team.Wait(nil)
		}
	})
	expect.Equal(t, actions.Load(), 500, "actions")
}

func TestTeamsWorkSideBySide(t *testing.T) {
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			team := New(2)
			defer team.Close()
			var n atomic.Int32
			for range 300 {
				team.Do(func(int) { n.Add(1); team.Wait(nil); n.Add(1) })
			}
			expect.Equal(t, n.Load(), 1200)
		})
	}
	all.Wait()
}

// BenchmarkABusyMachine keeps every processor busy with other work. A barrier that never yields its processor would
// wait for a time slice, 10 ms, at each of the two barriers of a job.
func BenchmarkABusyMachine(b *testing.B) {
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	}
	team := New(2)
	for b.Loop() {
		team.Do(func(int) {})
	}
	stop.Store(true)
	busy.Wait()
	team.Close()
}

// Parked workers use no CPU.
func TestTheWorkersOfAnIdleTeamPark(t *testing.T) {
	team := New(4)
	defer team.Close()
	team.Do(func(int) {})
	for team.gate.parked.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
}
