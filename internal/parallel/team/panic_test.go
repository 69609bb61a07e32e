package team

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// caught returns the panic of f, nil if f does not panic.
func caught(t *testing.T, f func()) (p *Panic) {
	t.Helper()
	defer func() {
		cause := recover()
		var ok bool
		if p, ok = cause.(*Panic); !ok {
			t.Errorf("got a panic with %T (%v), want a *Panic", cause, cause)
		}
	}()
	f()
	return nil
}

// A panic of any member, before or between barriers, reaches the caller. It does not block the other members, and the
// team remains usable.
func TestAPanicOfAMemberIsThatOfItsCaller(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for _, threads := range []int{1, 2, 5} {
			team := New(threads)
			if closed {
				team.Close()
			}
			for member := range threads {
				for barriers := range 3 {
					p := caught(t, func() {
						team.Do(func(thread int) {
							for i := range 4 {
								if thread == member && i == barriers {
									panic("on purpose")
								}
								team.Wait(nil)
							}
						})
					})
					if p == nil || p.Value != "on purpose" || p.Error() != "on purpose" || !strings.Contains(string(p.Stack), "TestAPanicOfAMember") {
						t.Fatalf("member %d of %d: got %+v", member, threads, p)
					}
					var n atomic.Int32
					team.Do(func(int) { n.Add(1); team.Wait(nil); n.Add(1) })
					if n.Load() != int32(2*threads) {
						t.Fatalf("after a panic %d of %d", n.Load(), 2*threads)
					}
				}
			}
			team.Close()
		}
	}
}

func TestAPanicOfABarriersActionIsTheCallers(t *testing.T) {
	team := New(3)
	defer team.Close()
	wrong := errors.New("wrong")
	for range 20 {
		p := caught(t, func() {
			team.Do(func(int) {
				team.Wait(func() { panic(wrong) })
				team.Wait(nil)
			})
		})
		if !errors.Is(p, wrong) {
			t.Fatalf("got %v", p)
		}
	}
}

// The number of ranges is practically infinite: if For began further ranges after the panic, it would not return.
func TestAPanicOfARangeIsTheCallers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 3} {
		runtime.GOMAXPROCS(procs)
		p := caught(t, func() {
			For(math.MaxInt/2, 1, func(from, _ int) {
				if from == 17 {
					panic("on purpose")
				}
				runtime.Gosched()
			})
		})
		if p == nil || p.Value != "on purpose" {
			t.Errorf("%d processors: got %v", procs, p)
		}
	}
}

// A closed team still runs jobs, and leaves no goroutines behind.
func TestAClosedTeamKeepsNoWorkers(t *testing.T) {
	before := runtime.NumGoroutine()
	team := New(4)
	team.Do(func(int) {})
	team.Close()
	for range 10 {
		team.Do(func(int) { team.Wait(nil) })
	}
	for range 60_000 { // waits up to a minute: the test fails only if a goroutine never ends
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
