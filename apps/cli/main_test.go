package cli

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/parallel/team"
)

// full is a standard output on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestResultsThatCannotBeWrittenEndWithExitCode7(t *testing.T) {
	for _, args := range []string{"version", "list", "list --json layers", "summary shallow", "summary shallow --json", "summary shallow --plan",
		"check", "check --fill shallow", "data list", "doctor"} {
		var stderr strings.Builder
		expect.Equal(t, run(context.Background(), strings.Fields(args), full{}, &stderr), exitWrite, args, "exit code")
		expect.Equal(t, stderr.String(), "tessera: cannot write standard output: no space left on device\n", args)
	}
}

// broken is a standard output that panics.
type broken struct{}

func (broken) Write([]byte) (int, error) { panic("an internal fault") }

// brokenElsewhere is a standard output that panics on another goroutine.
type brokenElsewhere struct{}

func (brokenElsewhere) Write([]byte) (int, error) {
	var g team.Group
	g.Go(func() { panic("a fault of a worker") })
	g.Wait()
	return 0, nil
}

func TestAPanicOfAWorkerHasItsOwnStack(t *testing.T) {
	var stderr strings.Builder
	expect.Equal(t, run(context.Background(), []string{"version"}, brokenElsewhere{}, &stderr), exitInternal, "exit code")
	if text := stderr.String(); !strings.Contains(text, "internal error: a fault of a worker\ngoroutine ") || !strings.Contains(text, "brokenElsewhere.Write.func1") {
		t.Errorf("got %q", text)
	}
}

func TestAPanicEndsWithExitCode1AndAsksToBeReported(t *testing.T) {
	var stderr strings.Builder
	expect.Equal(t, run(context.Background(), []string{"version"}, broken{}, &stderr), exitInternal, "exit code")
	text := stderr.String()
	if !strings.HasPrefix(text, "tessera: internal error: an internal fault\ngoroutine ") || !strings.Contains(text, "broken.Write") || !strings.Contains(text, "please report this") {
		t.Errorf("got %q", text)
	}
}
