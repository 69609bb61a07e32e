package layers_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between two collections: the laws compile thousands of small graphs, and their collections took a
// fifth of the processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
