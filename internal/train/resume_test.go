package train

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tessera/config"
	"tessera/config/part"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

func TestTwoRunsGiveEqualBytes(t *testing.T) {
	m := model(t, everything)
	sameRun(t, trained(t, m, Options{}).Run, trained(t, m, Options{}).Run)
}

func TestARunInterruptedAtAnyStepResumesToTheSameBytes(t *testing.T) {
	interruptedEverywhere(t, model(t, everything))
}

func TestARunInterruptedInAnyPassOfAnEpochResumesToTheSameBytes(t *testing.T) {
	interruptedEverywhere(t, model(t, everything, "dataset.count=500", "train.epochs=2", "train.batch=96", "train.min_epoch_steps=5")) // two passes of four steps
}

// stride returns the distance between the interrupted steps: 1, or 7 with -short and under the race detector.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// startOf returns the first of the steps that are stride apart and end with last.
func startOf(last int) int { return 1 + (last-1)%stride() }

func interruptedEverywhere(t *testing.T, m *config.Model) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	for at := startOf(want.Step); at <= want.Step; at += stride() {
		run := place(t)
		ctx, backend := cancelledAt(at, engine.Backend{})
		r, err := Run(ctx, m, Options{Backend: backend, Out: run, Disk: &faulty.Disk{}})
		if at == want.Step {
			if err != nil || r.Step != want.Step {
				t.Errorf("interrupted in the last step: got %v, want a finished run", err)
			}
		} else if !errors.Is(err, ErrInterrupted) {
			t.Fatalf("interrupted in step %d: got %v", at, err)
		}
		from, err := readState(run + "/" + folder.State)
		if err != nil || from.Step != at {
			t.Fatalf("interrupted in step %d: the checkpoint is of step %d (%v)", at, from.Step, err)
		}
		if _, err := Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{}}); err != nil {
			t.Fatal(err)
		}
		sameRun(t, run, want.Run)
	}
}

// If the new number of epochs were smaller than the checkpoint's epoch, the parameters would include later steps.
func TestARunWithinAnEpochNeedsThatEpoch(t *testing.T) {
	m := model(t, everything, "dataset.count=500", "train.batch=96", "train.min_epoch_steps=5") // two passes of four steps
	for _, at := range []int{18, 20} {
		run := place(t)
		ctx, backend := cancelledAt(at, tape.Backend{})
		if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		want, config := read(t, run, folder.Model), read(t, run, folder.Config)
		refused := func(what string, epochs int) {
			t.Helper()
			_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: epochs})
			var key part.KeyError
			if !errors.As(err, &key) || key.Key != "epochs" || !strings.Contains(err.Error(), "got 2, but the last checkpoint is within epoch 3; want at least 3") {
				t.Errorf("step %d, %s: %v", at, what, err)
			}
			if got := read(t, run, folder.Model); !slices.Equal(got, want) {
				t.Errorf("step %d, %s: the parameters have changed", at, what)
			}
		}
		refused("the option", 2)
		if got := read(t, run, folder.Config); !slices.Equal(got, config) {
			t.Error("config.toml was edited")
		}
		edit(t, run, "epochs = 4", "epochs = 2")
		refused("an edited declaration", 0)
		if r, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 3}); err != nil || r.Epochs != 3 || r.Step != 24 {
			t.Errorf("step %d: three epochs: %+v, %v", at, r, err)
		}
	}
}

func TestStateOfLayersResumesToTheSameBytes(t *testing.T) {
	m := model(t, strings.Replace(everything, `kind = "dense"`, `kind = "conv2d"
filters = 2
[[model.everything.encoder]]
kind = "batch_norm"
[[model.everything.encoder]]
kind = "plasticity"
[[model.everything.encoder]]
kind = "dense"`, 1))
	want := trained(t, m, Options{})
	result, err := Open(want.Run)
	if err != nil {
		t.Fatal(err)
	}
	for path, start := range map[string]float32{"encoder.3.running_mean": 0, "encoder.4.gain": 1, "encoder.4.bias": -3} {
		p, err := result.Parameter(path)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(p.Data, start) {
			t.Errorf("after %d steps %s is %v: it has not moved", want.Step, path, p.Data)
		}
	}
	interruptedEverywhere(t, m)
}

func TestARunKilledAtAnyMomentResumesToTheSameBytes(t *testing.T) {
	killedEverywhere(t, model(t, everything, "train.epochs=2"))
}

// killedEverywhere ends the process before each operation on the disk, and in the middle of each write.
func killedEverywhere(t *testing.T, m *config.Model) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	resumed := 0
	for at := 1; ; at += stride() {
		run := place(t)
		_, err := Run(context.Background(), m, Options{Backend: engine.Backend{}, Out: run, Disk: &faulty.Disk{DieAt: at}})
		if err == nil {
			if at < 40 {
				t.Errorf("a run has only %d operations on the disk: is it written at all?", at-1)
			}
			break
		}
		if !errors.Is(err, faulty.ErrDead) {
			t.Fatalf("killed before operation %d: got %v", at, err)
		}
		if _, err := os.Stat(run); err == nil {
			if _, err := Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{}}); err != nil {
				t.Fatalf("killed before operation %d: %v", at, err)
			}
			sameRun(t, run, want.Run)
			resumed++
		}
	}
	if resumed == 0 {
		t.Error("no killed run left a checkpoint: nothing was resumed")
	}
}

func TestARunKilledAgainAndAgainResumesToTheSameBytes(t *testing.T) {
	killedAgain(t, model(t, everything))
}

// killedAgain ends the process at random operations on the disk, also after each resume.
func killedAgain(t *testing.T, m *config.Model) {
	t.Helper()
	want := trained(t, m, Options{Backend: engine.Backend{}})
	r := rand.New(rand.NewPCG(1, 2))
	again := 0
	for range 5 {
		run, kills := place(t), 0
		_, err := Run(context.Background(), m, Options{Backend: engine.Backend{}, Out: run, Disk: &faulty.Disk{DieAt: 12 + r.IntN(20)}})
		for ; err != nil; kills++ {
			if !errors.Is(err, faulty.ErrDead) {
				t.Fatal(err)
			}
			_, err = Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{DieAt: 4 + r.IntN(30)}})
		}
		if kills == 0 {
			t.Error("the run ended before it was killed")
		}
		again += max(0, kills-1)
		t.Logf("killed %d times", kills)
		sameRun(t, run, want.Run)
	}
	if again == 0 {
		t.Error("no resumption was killed")
	}
}

func TestAFullDiskIsReportedAndTheRunResumesToTheSameBytes(t *testing.T) {
	m := model(t, everything, "train.epochs=2")
	want := trained(t, m, Options{Backend: engine.Backend{}})
	for at := 1; ; at++ {
		run := place(t)
		_, err := Run(context.Background(), m, Options{Backend: engine.Backend{}, Out: run, Disk: &faulty.Disk{FullAt: at}})
		if err == nil {
			break
		}
		var failed *folder.WriteError
		if !errors.As(err, &failed) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("full at operation %d: got %v, want a *WriteError", at, err)
		}
		if _, err := os.Stat(run); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{}}); err != nil {
			t.Fatalf("full at operation %d: %v", at, err)
		}
		sameRun(t, run, want.Run)
	}
}
