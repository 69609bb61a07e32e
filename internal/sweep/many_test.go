package sweep

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tessera/internal/train/folder"
)

func TestASweepOfManyTrialsDoesNotWriteItsResultsAfterEveryTrial(t *testing.T) {
	for _, many := range []bool{false, true} {
		s := open(t, spec(t, declared, "s"), Options{Out: t.TempDir()})
		held := filepath.Join(s.Path, ResultsFile)
		w := working(t, s, many)
		if err := w.record(); err != nil {
			t.Fatal(err)
		}
		w.writing = time.Hour // as if the last write had taken an hour
		if err := os.Remove(held); err != nil {
			t.Fatal(err)
		}
		if err := w.record(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(held); (err != nil) != many || w.stale != many {
			t.Errorf("many trials %v: stat %v, stale %v", many, err, w.stale)
		}
	}
}

// working returns a running sweep. If many is true, each trial is repeated until the sweep has more than manyTrials.
func working(t *testing.T, s *Sweep, many bool) *work {
	t.Helper()
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	copied := *s
	for many && len(copied.Trials) <= manyTrials {
		copied.Trials = append(copied.Trials, s.Trials...)
	}
	return &work{Sweep: &copied, folder: held}
}
