package sweep

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tessera/internal/fatal"
	"tessera/internal/train/folder"
)

func TestASweepOfManyTrialsDoesNotWriteItsResultsAfterEveryTrial(t *testing.T) {
	for _, many := range []bool{false, true} {
		s := open(t, spec(t, declared, "s"), Options{Out: t.TempDir()})
		held := filepath.Join(s.Path, ResultsFile)
		w := working(t, s, many)
		fatal.If(t, w.record())
		w.writing = time.Hour // as if the last write had taken an hour
		fatal.If(t, os.Remove(held))
		fatal.If(t, w.record())
		if _, err := os.Stat(held); (err != nil) != many || w.stale != many {
			t.Errorf("many trials %v: stat %v, stale %v", many, err, w.stale)
		}
	}
}

// working returns a running sweep. If many is true, each trial is repeated until the sweep has more than manyTrials.
func working(t *testing.T, s *Sweep, many bool) *work {
	t.Helper()
	held, err := folder.Hold(s.Path, s.options.Disk)
	fatal.If(t, err)
	t.Cleanup(func() { _ = held.Close() })
	copied := *s
	for many && len(copied.Trials) <= manyTrials {
		copied.Trials = append(copied.Trials, s.Trials...)
	}
	return &work{Sweep: &copied, folder: held}
}
