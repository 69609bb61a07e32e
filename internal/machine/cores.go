package machine

import (
	"runtime"
	"sync"
)

// Cores says what the system tells about the cores of the processor.
type Cores struct {
	// Fast is the number of cores of the fastest kind, if there are several kinds; else 0.
	Fast int
	// Caches are the sizes in bytes of the data caches of one of these cores, the first level first.
	Caches []int
}

// Processor returns what the system tells about the cores of the processor.
var Processor = sync.OnceValue(cores)

// Threads returns the number of threads that share the work of a program: one for every processor that the process may use, but not
// more than there are fast cores. Every thread has an equal part of the work, so that a slow core would keep the others waiting.
func Threads() int {
	threads := runtime.GOMAXPROCS(0)
	if fast := Processor().Fast; fast > 0 {
		return min(threads, fast)
	}
	return threads
}
