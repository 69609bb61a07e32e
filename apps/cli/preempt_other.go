//go:build !unix

package cli

import "os"

// preempting lists the signals by which schedulers announce the end of a job. This system has none.
var preempting []os.Signal
