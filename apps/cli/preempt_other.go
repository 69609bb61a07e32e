//go:build !unix

package cli

import "os"

// preempting are the signals by which schedulers announce the end of a job: this system has none.
var preempting []os.Signal
