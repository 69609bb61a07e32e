package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

func TestASweepOnWorkersHasTheFilesOfASweepOnOneMachine(t *testing.T) {
	want := alone(t, declared)
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, declared, filepath.Join(t.TempDir(), "s"), Options{Jobs: 1})
	ended := b.run(ctx)
	b.worker(ctx, WorkerOptions{})
	b.worker(ctx, WorkerOptions{Jobs: 2})
	var failed *sweep.Failed
	if err := <-ended; !errors.As(err, &failed) || len(failed.Trials) != 4 {
		t.Errorf("got %v, want four trials that diverge", err)
	}
	stop()
	b.workers.Wait()
	got := files(t, b.out)
	same(t, got, want)
	expect.AnyError(t, expect.Err(os.Stat(filepath.Join(b.out, sweep.FleetDir))), "the queue of a sweep that has ended is still there")
}

// fullDisk is a disk that is full after the first files.
type fullDisk struct {
	folder.OS
	left atomic.Int64
}

func (d *fullDisk) WriteFile(path string, write func(io.Writer) error) error {
	if d.left.Add(-1) < 0 {
		return &os.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	}
	return d.OS.WriteFile(path, write)
}

func TestAWorkerWithAFullDiskGivesItsTrialsBack(t *testing.T) {
	t.Parallel()
	want := alone(t, declared)
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, declared, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	disk := &fullDisk{}
	disk.left.Store(9)
	var unwritten *folder.WriteError
	if err := <-b.worker(ctx, WorkerOptions{Disk: disk}); !errors.As(err, &unwritten) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the worker with the full disk: got %v, want its write error", err)
	}
	b.worker(ctx, WorkerOptions{})
	<-ended
	stop()
	b.workers.Wait()
	same(t, files(t, b.out), want)
}

// Of a trial that diverges, the last good checkpoint is that of the interruption, so that here none does.
func TestAnInterruptedSweepIsResumedWithoutWorkers(t *testing.T) {
	t.Parallel()
	long := strings.NewReplacer("epochs = 4", "epochs = 60", "[0.01, 1e30]", "[0.01]").Replace(declared)
	want := alone(t, long)
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, long, filepath.Join(t.TempDir(), "s"), Options{Lease: 300 * time.Millisecond})
	b.report = func(e sweep.Event) {
		if e.Ended { // when the first of the four trials has ended
			stop()
		}
	}
	ended := b.run(ctx)
	working, leave := context.WithCancel(context.Background())
	b.worker(working, WorkerOptions{})
	expect.Is(t, <-ended, train.ErrInterrupted)
	leave()
	b.workers.Wait()
	s, err := sweep.New(context.Background(), spec(t, long), sweep.Options{Out: b.out})
	fatal.If(t, err)
	_, err = s.Run(context.Background())
	fatal.If(t, err)
	got := files(t, b.out)
	for name := range got {
		if strings.HasPrefix(name, sweep.FleetDir+string(filepath.Separator)) { // the files of the queue are not part of the results
			delete(got, name)
		}
	}
	same(t, got, want)
}

func TestASecondResultThatDiffersNamesBothMachines(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b := newBench(t, declared, filepath.Join(t.TempDir(), "s"), Options{Jobs: 1})
	ended := b.run(ctx)
	first := b.sweep.Trials[0]
	b.until("the first trial is done", func() bool { return b.sweep.Check(first) == nil })
	about, err := b.coordinator.task(first)
	fatal.If(t, err)
	text, err := encode(about)
	fatal.If(t, err)
	equal := &result{Protocol: protocol, Trial: first.ID, Task: sum(text), Worker: "honest-1", Run: someRun()}
	kept, err := os.ReadFile(filepath.Join(first.Path, evalFile))
	fatal.If(t, err)
	equal.Digest = sum(kept)
	other := *equal
	other.Worker, other.Digest = "faulty-2", sum([]byte("other metrics"))
	for _, r := range []*result{equal, &other} {
		text, err := encode(r)
		fatal.If(t, err)
		fatal.If(t, expect.Err(b.coordinator.store.js.Publish(ctx, b.coordinator.names.subject("result."+first.ID), text)))
	}
	err = <-ended
	if mismatch, ok := errors.AsType[*checkpoint.Error](err); !ok || !mismatch.Mismatch || !strings.Contains(err.Error(), "faulty-2") || !strings.Contains(err.Error(), host()) {
		t.Errorf("got %v, want an error that names faulty-2 and %s", err, host())
	}
	if strings.Contains(err.Error(), "honest-1") {
		t.Errorf("the equal result counts as different: %v", err)
	}
}

// someRun returns a manifest of a run that is not in the store.
func someRun() *manifest {
	return &manifest{Files: []entry{{Name: evalFile, Size: 1, SHA256: sum([]byte("x"))}}, Parts: []piece{{Object: "x.y", Size: 1, SHA256: sum([]byte("x"))}}}
}

func TestATrialThatFailsOnEveryWorkerEndsAsFailedAfterThreeTries(t *testing.T) {
	t.Parallel()
	one := strings.NewReplacer("seeds = [1, 2]", "seeds = [1]", "[0.1, 0.3]", "[0.1]", "[0.01, 1e30]", "[0.01]").Replace(declared)
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, one, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	var tries atomic.Int64
	b.worker(ctx, WorkerOptions{fake: func(context.Context, *store, *task) (*manifest, error) {
		return nil, fmt.Errorf("no such device, try %d", tries.Add(1))
	}})
	err := <-ended
	if failed, ok := errors.AsType[*sweep.Failed](err); !ok || len(failed.Trials) != 1 || tries.Load() != mostFailures {
		t.Fatalf("got %v after %d tries, want one failed trial after %d", err, tries.Load(), mostFailures)
	}
	for _, want := range []string{"failed 3 times", host(), "no such device, try 1", "no such device, try 3"} {
		expect.Contains(t, err.Error(), want, "lacks", err)
	}
	stop()
	b.workers.Wait()
}

func TestWorkersThatAreLostCountUntilTheNextCheckpoint(t *testing.T) {
	r := &record{}
	for range mostLosses - 1 {
		r.Tries = append(r.Tries, try{Worker: "w"})
	}
	r.Tries = append(r.Tries, try{Worker: "w", Problem: "p"}, try{Worker: "w", Problem: "p"})
	if r.exhausted() {
		t.Error("a trial ends too early")
	}
	if r.Tries = append(r.Tries, try{Worker: "w"}); !r.exhausted() {
		t.Error("a trial that ends every worker never ends")
	}
}
