package sweep

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/parallel/team"
)

// A trial runs on a separate goroutine. Without a recovery, Go would end the process with exit code 2 and without any
// clean-up.
func TestAPanicOfATrialIsThatOfTheSweepAndLeavesNoHalves(t *testing.T) {
	whole, out := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: whole})
	var report func(Event)
	s := open(t, spec(t, declared, "s"), Options{Out: out, Jobs: 2, Report: func(e Event) { report(e) }})
	report = func(e Event) {
		if e.Progress != nil && e.Progress.Epoch == 2 {
			panic("on purpose")
		}
	}
	func() {
		defer func() {
			var p *team.Panic
			if err, _ := recover().(error); !errors.As(err, &p) || p.Value != "on purpose" || !strings.Contains(string(p.Stack), "panic_test.go") {
				t.Errorf("got %v", err)
			}
		}()
		_, _ = s.Run(context.Background())
	}()
	for name := range files(t, out) {
		if strings.HasSuffix(name, ".new") {
			t.Errorf("%s is left over", name)
		}
	}
	report = func(Event) {}
	if _, err := s.Run(context.Background()); err != nil { // the folders must no longer be locked
		t.Fatal(err)
	}
	same(t, "resumed after a panic", files(t, out), files(t, whole))
}
