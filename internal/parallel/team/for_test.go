package team

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestForCoversEveryIndexOnceInRangesOfTheGrain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 5} {
		runtime.GOMAXPROCS(procs)
		for _, n := range []int{0, 1, 7, 64, 65} {
			for _, grain := range []int{0, 1, 8, 100} {
				seen := make([]atomic.Int32, n)
				For(n, grain, func(from, to int) {
					if g := max(grain, 1); from%g != 0 || to-from > g || from >= to {
						t.Errorf("n %d grain %d: range [%d,%d)", n, grain, from, to)
					}
					for i := from; i < to; i++ {
						seen[i].Add(1)
					}
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("procs %d n %d grain %d: index %d visited %d times", procs, n, grain, i, c)
					}
				}
			}
		}
	}
}

func TestForUsesAtMostGOMAXPROCSGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	atMost(t, 3)
}

func TestForUsesAtMostAsManyGoroutinesAsItsLimit(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	defer Limit(0)
	for _, n := range []int{1, 2} {
		Limit(n)
		atMost(t, int32(n))
	}
}

// atMost fails if more than limit ranges run at the same time.
func atMost(t *testing.T, limit int32) {
	t.Helper()
	var running, most atomic.Int32
	For(200, 1, func(int, int) {
		now := running.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		runtime.Gosched()
		running.Add(-1)
	})
	if most.Load() > limit {
		t.Errorf("%d ranges ran at once, want at most %d", most.Load(), limit)
	}
}
