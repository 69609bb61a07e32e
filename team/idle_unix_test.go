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

func TestAnIdleTeamUsesNoProcessor(t *testing.T) {
	team := New(4)
	defer team.Close()
	team.Do(func(int) {})
	time.Sleep(50 * time.Millisecond) // the workers park
	began := processTime(t)
	const idle = 300 * time.Millisecond
	time.Sleep(idle)
	if used := processTime(t) - began; used > idle/5 {
		t.Errorf("an idle team used %v of processor time in %v", used, idle)
	}
}
