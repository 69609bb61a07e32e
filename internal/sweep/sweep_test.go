package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

func TestResultsDoNotDependOnHowManyTrialsRunAtOnce(t *testing.T) {
	one, three := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "three")
	run(t, declared, Options{Out: one, Jobs: 1})
	run(t, declared, Options{Out: three, Jobs: 3})
	same(t, "three at once", files(t, three), files(t, one))
}

func TestATrialIsTheRunThatTrainMakes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	s := open(t, spec(t, declared, "s"), Options{Out: out})
	for _, trial := range s.Trials {
		alone := filepath.Join(t.TempDir(), "run")
		fatal.If(t, expect.Err(train.Run(context.Background(), trial.Model, train.Options{Backend: engine.Backend{Team: team.New(1)}, Out: alone})))
		for _, name := range []string{folder.Config, folder.State, folder.Model} {
			a, _ := os.ReadFile(filepath.Join(alone, name))
			b, err := os.ReadFile(filepath.Join(trial.Path, name))
			if err != nil || string(a) != string(b) {
				t.Errorf("trial %s: %s differs from that of a run: %v", trial.ID, name, err)
			}
		}
	}
}

// sweeps declares sweeps whose results are made in different ways: an auto-encoder, holes in the images, a matrix of ratings, two heads
// with tables, and a selection.
var sweeps = map[string]struct {
	text    string
	metrics []string
}{
	"auto-encoder": {text: strings.Replace(declared, "seeds = [1, 2]", "seeds = [1]", 1)},
	"holes":        {text: strings.Replace(strings.Replace(declared, "count = 100", "count = 40, hide = 0.2", 1), "seeds = [1, 2]", "seeds = [1]", 1)},
	"ratings": {text: `
[model.mf]
kind = "matrix_factorisation"
components = 2
iterations = 3
dataset = { name = "triples", file = "RATINGS", hide = 0.2 }
[sweep.s]
model = "mf"
seeds = [1, 2]
`},
	"heads": {text: `
[model.h]
dataset = { name = "credit", count = 60, test = 40, validation = 0.5 }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head = { a = { layers = [{ kind = "dense" }] }, b = { layers = [{ kind = "dense" }] } }
loss = [{ kind = "cross_entropy", on = "a" }, { kind = "cross_entropy", on = "b" }]
train = { epochs = 2, checkpoint_seconds = 0 }
[sweep.s]
model = "h"
seeds = [1]
set.optimizer.learning_rate = [0.01, 0.02]
`, metrics: []string{"accuracy", "per_class", "fairness"}},
	"selection": {text: strings.Replace(declared, "count = 100", "count = 100, validation = 0.3", 1) + `select = "mse"` + "\n"},
}

// Law: a sweep that is stopped at any operation on the disk, and a finished one that is run again, have the bytes of an uninterrupted
// sweep. The auto-encoder is stopped at every operation, the other sweeps at six.
func TestASweepThatDiesAtAnyMomentGoesOnToTheSameBytes(t *testing.T) {
	for name, one := range sweeps {
		t.Run(name, func(t *testing.T) {
			ratings := filepath.Join(t.TempDir(), "ratings.csv")
			var rows strings.Builder
			rows.WriteString("user,film,stars\n")
			for i := range 12 {
				for j := range 8 {
					if (i+j)%3 > 0 {
						fmt.Fprintf(&rows, "u%d,f%d,%d\n", i, j, 1+(i*j)%5)
					}
				}
			}
			put(t, ratings, []byte(rows.String()))
			text := strings.ReplaceAll(one.text, "RATINGS", filepath.ToSlash(ratings))
			chosen, err := metrics.Select(one.metrics...)
			fatal.If(t, err)
			if one.metrics == nil {
				chosen = nil
			}
			var changes []string
			if name != "ratings" {
				changes = []string{"train.epochs=2"}
			}
			whole, counter := filepath.Join(t.TempDir(), "s"), &dying{}
			run(t, text, Options{Out: whole, Jobs: 1, Disk: counter, Metrics: chosen}, changes...)
			want := files(t, whole)
			run(t, text, Options{Out: whole, Jobs: 1, Metrics: chosen}, changes...)
			same(t, "run again", files(t, whole), want)
			step, times := 1, 6
			if testing.Short() {
				step, times = 13, 2
			}
			if name != "auto-encoder" {
				step = max(1, counter.count/times)
			}
			for at := 1; at <= counter.count; at += step {
				out := filepath.Join(t.TempDir(), "s")
				disk := &dying{at: at, err: errDead}
				_, err := open(t, spec(t, text, "s", changes...), Options{Out: out, Jobs: 1, Disk: disk, Metrics: chosen}).Run(t.Context())
				if !errors.Is(err, errDead) {
					t.Fatalf("the disk died at operation %d of %d, the sweep ended with %v", at, counter.count, err)
				}
				run(t, text, Options{Out: out, Jobs: 2, Metrics: chosen}, changes...)
				same(t, "died at operation "+strconv.Itoa(at), files(t, out), want)
			}
			t.Logf("%d operations", counter.count)
		})
	}
}

func TestAFullDiskEndsTheSweepWithWhatCouldNotBeWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	disk := &dying{at: 30, err: syscall.ENOSPC}
	_, err := open(t, spec(t, declared, "s"), Options{Out: out, Disk: disk}).Run(context.Background())
	expect.As[*folder.WriteError](t, err, "")
}

func TestAnInterruptedSweepGoesOnToTheSameBytes(t *testing.T) {
	whole, cut := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "cut")
	run(t, declared, Options{Out: whole})
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		trained := 0
		o := Options{Out: cut, Report: func(e Event) {
			if e.Progress != nil && e.Progress.EpochDone {
				if trained++; trained == 2 {
					cancel()
				}
			}
		}}
		_, err := open(t, spec(t, declared, "s"), o).Run(ctx)
		cancel()
		if err != nil && !errors.Is(err, train.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	run(t, declared, Options{Out: cut})
	same(t, "interrupted", files(t, cut), files(t, whole))
}

func TestAFinishedSweepIsLeftAsItIs(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	disk, worked := &dying{}, 0
	run(t, declared, Options{Out: out, Disk: disk, Report: func(e Event) {
		if !e.Kept {
			worked++
		}
	}})
	expect.Equal(t, disk.count, 0)
	expect.Equal(t, worked, 0)
}

func TestAWiderSweepRepeatsNoTrialThatIsThere(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	wider := strings.Replace(declared, "[0.1, 0.3]", "[0.1, 0.2, 0.3]", 1)
	var kept, trained int
	r := run(t, wider, Options{Out: out, Report: func(e Event) {
		if e.Kept {
			kept++
		} else if e.Ended {
			trained++
		}
	}})
	if kept != 4 || trained != 2 || len(r.Trials) != 6 || len(r.Settings) != 3 {
		t.Errorf("%d kept, %d trained, %d trials, %d settings", kept, trained, len(r.Trials), len(r.Settings))
	}
}

func TestAFailedTrialStopsNoOther(t *testing.T) {
	out := filepath.Join(t.TempDir(), "d")
	var told []string
	s := open(t, spec(t, declared+diverging, "d"), Options{Out: out, Report: func(e Event) {
		if e.Err != nil {
			told = append(told, e.Trial.ID)
		}
	}})
	r, err := s.Run(context.Background())
	var failed *Failed
	if !errors.As(err, &failed) || len(failed.Trials) != 2 || len(told) != 2 || failed.Total != 4 {
		t.Fatalf("%d failures told, error %v", len(told), err)
	}
	for i, row := range r.Trials {
		if bad := i >= 2; (row.Metrics == nil) != bad || strings.Contains(row.Error, "diverged") != bad || strings.Contains(row.Error, out) {
			t.Errorf("trial %d: metrics %v, error %q", i, row.Metrics, row.Error)
		}
	}
	if got := r.Settings[1]; len(got.Seeds) != 0 || len(got.Trials) != 2 || len(got.Mean) != 0 {
		t.Errorf("the setting that failed: %+v", got)
	}
	before := files(t, out)
	if _, err := open(t, spec(t, declared+diverging, "d"), Options{Out: out}).Run(context.Background()); !errors.As(err, &failed) {
		t.Errorf("the second time: %v", err)
	}
	same(t, "the second time", files(t, out), before)
}
