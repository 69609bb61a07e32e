//go:build linux || darwin

package team

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of this process so far.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A busy machine may let the workers park late, so that only a team that is never idle fails.
func TestAnIdleTeamUsesNoProcessor(t *testing.T) {
	team := New(4)
	defer team.Close()
	team.Do(func(int) {})
	const idle = 300 * time.Millisecond
	least := time.Hour
	for range 30 {
		began := processTime(t)
		time.Sleep(idle)
		if least = min(least, processTime(t)-began); least <= idle/5 {
			return
		}
	}
	t.Errorf("an idle team used at least %v of processor time in each of 30 times %v", least, idle)
}
