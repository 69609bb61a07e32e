// Package parallel spreads independent work over the processors that Go may use (GOMAXPROCS).
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// For calls f on consecutive ranges [from, to) of at most grain indices that cover [0, n), on at most GOMAXPROCS
// goroutines, and returns when all calls have. Ranges always start at multiples of grain, but which goroutine takes
// which, and when, is open: f must write only to what belongs to its range.
func For(n, grain int, f func(from, to int)) {
	grain = max(grain, 1)
	ranges := (n + grain - 1) / grain
	workers := min(runtime.GOMAXPROCS(0), ranges)
	if workers <= 1 {
		for from := 0; from < n; from += grain {
			f(from, min(from+grain, n))
		}
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for {
				from := (int(next.Add(1)) - 1) * grain
				if from >= n {
					return
				}
				f(from, min(from+grain, n))
			}
		})
	}
	wait.Wait()
}
