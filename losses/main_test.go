package losses_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow further between two collections: the tests compile hundreds of small graphs, and their collections took about a fifth of
// the processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
