//go:build unix

package cli

import (
	"os"
	"syscall"
)

// preempting lists the signals by which schedulers announce the end of a job.
var preempting = []os.Signal{syscall.SIGUSR1}
