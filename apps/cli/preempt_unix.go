//go:build unix

package cli

import (
	"os"
	"syscall"
)

// preempting are the signals by which schedulers announce the end of a job.
var preempting = []os.Signal{syscall.SIGUSR1}
