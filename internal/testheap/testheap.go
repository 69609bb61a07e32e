// Package testheap is imported by tests that compile many small graphs or train many small models. It lets their heap grow further
// between two collections, which otherwise take a fifth of the processor time. The environment variable GOGC takes precedence.
package testheap

import (
	"os"
	"runtime/debug"
)

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
