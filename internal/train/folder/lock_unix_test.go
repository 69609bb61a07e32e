//go:build unix && !solaris && !illumos && !aix

package folder

import (
	"sync"
	"sync/atomic"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Frequent calls of Held, for example by a list of runs, do not prevent other processes from locking the folder.
func TestAskingWhetherAFolderIsHeldLocksNobodyOut(t *testing.T) {
	dir := t.TempDir()
	var asking sync.WaitGroup
	var end atomic.Bool
	for range 4 {
		asking.Go(func() {
			for !end.Load() {
				Held(dir)
			}
		})
	}
	for i := range 2000 {
		held, err := lock(dir)
		if err != nil {
			t.Errorf("lock %d: %v", i, err)
			break
		}
		if i == 0 {
			expect.Is(t, expect.Err(lock(dir)), ErrLocked, "a second lock")
			if !Held(dir) {
				t.Error("a locked folder is not held")
			}
		}
		fatal.If(t, unlock(held))
	}
	end.Store(true)
	asking.Wait()
}
