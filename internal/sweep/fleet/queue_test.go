package fleet

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

var emptyTrials = flag.Int("empty", 200, "number of empty trials of TestEmptyTrials")

// TestEmptyTrials sends trials through the queue without training them. Tasks, records, files and results are as in
// other sweeps. With -v it prints the time, and the memory of the process, which is coordinator, server and workers at
// once.
func TestEmptyTrials(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b := newBench(t, declared, filepath.Join(t.TempDir(), "s"), Options{})
	c := b.coordinator
	var installed atomic.Int64
	c.put = func(_ *sweep.Trial, r *result, files []folder.File) error {
		if len(files) != 1 || string(files[0].Data) != r.Trial {
			return fmt.Errorf("trial %s has other files", r.Trial)
		}
		installed.Add(1)
		return nil
	}
	model := b.sweep.Trials[0].Model
	var trials []*sweep.Trial
	for i := range *emptyTrials {
		id := fmt.Sprintf("%016x", i+1)
		trials = append(trials, &sweep.Trial{Trial: config.Trial{Model: model}, ID: id, Path: filepath.Join(b.out, "trials", id)})
	}
	fatal.If(t, c.Begin(ctx, b.sweep, nil))
	for _, trial := range trials {
		c.trials[trial.ID] = trial
	}
	for range 2 {
		b.worker(ctx, WorkerOptions{Jobs: 2, fake: func(ctx context.Context, s *store, w *task) (*manifest, error) {
			return s.put(ctx, w.Trial, []folder.File{{Name: evalFile, Data: []byte(w.Trial)}})
		}})
	}
	began, next := time.Now(), atomic.Int64{}
	var doing sync.WaitGroup
	for range c.Width() {
		doing.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(trials)); i = next.Add(1) - 1 {
				expect.NoError(t, c.Do(ctx, borrowed(b, trials[i]), func(train.Progress) {}))
				if (i+1)%1000 == 0 {
					t.Logf("%5d trials in %5.1f s, %s MiB resident", i+1, time.Since(began).Seconds(), resident())
				}
			}
		})
	}
	doing.Wait()
	t.Logf("%d trials in %.1f s, %.2f ms each, %s MiB resident", len(trials), time.Since(began).Seconds(), time.Since(began).Seconds()*1e3/float64(len(trials)), resident())
	expect.Equal(t, installed.Load(), int64(len(trials)), "results were installed, want", len(trials))
	began = time.Now()
	expect.NoError(t, c.End(nil))
	t.Logf("closed in %.1f s", time.Since(began).Seconds())
	stop()
	b.workers.Wait()
}

// borrowed returns the trial t with the data of a real trial.
func borrowed(b *bench, t *sweep.Trial) *sweep.Trial {
	real := *b.sweep.Trials[0]
	real.ID, real.Path = t.ID, t.Path
	*t = real
	return t
}

// resident returns the memory of this process after a garbage collection, in MiB, "?" if the system does not report it.
func resident() string {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "?"
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		return "?"
	}
	return fmt.Sprint(pages * os.Getpagesize() >> 20)
}

// A cancellation while a resumed sweep begins is not undone by its beginning.
func TestACancelledSweepDoesNotRunAgain(t *testing.T) {
	c := NewCoordinator(Options{})
	for _, step := range []struct{ to, want string }{{stateRun, stateRun}, {stateCancel, stateCancel}, {stateRun, stateCancel}, {stateEnd, stateEnd}, {stateRun, stateEnd}} {
		c.setState(step.to)
		expect.Equal(t, c.state, step.want, step.to, "the state")
	}
}
