package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

func TestAManifestThatRepeatsAnObjectIsRefused(t *testing.T) {
	part := piece{Object: "x.y", Size: partSize, SHA256: sum([]byte("x"))}
	m := &manifest{Files: []entry{{Name: folder.State, Size: 2 * partSize, SHA256: sum([]byte("x"))}}, Parts: []piece{part, part}}
	expect.Error(t, m.check(), "twice")
	m.Parts[1].Object = "x.z"
	expect.NoError(t, m.check(), "different objects")
}

func TestMoreBytesThanARunCanHaveAreNotFetched(t *testing.T) {
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	one := b.sweep.Standalone(b.sweep.Trials[0])
	most := largestRun(one)
	files, _ := runOf(t, single)
	n := int64(0)
	for _, f := range files {
		n += int64(len(f.Data))
	}
	if n > most/10 {
		t.Errorf("a run of %d bytes is near the bound of %d", n, most)
	}
	if most > 1<<30 {
		t.Errorf("the bound of a model of hundreds of parameters is %d bytes", most)
	}
	m := &manifest{Files: []entry{{Name: folder.State, Size: most + 1, SHA256: sum(nil)}}}
	expect.Error(t, expect.Err((&store{}).get(t.Context(), m, most)), fmt.Sprintf("at most %d", most))
}

// Parts with equal bytes, such as zeros, are different objects.
func TestEqualPartsAreStored(t *testing.T) {
	b, stop := served(t, Options{})
	defer stop()
	zeros := []folder.File{{Name: folder.State, Data: make([]byte, 2*partSize+5)}}
	m, err := b.coordinator.store.put(t.Context(), "zeros", zeros)
	fatal.If(t, err)
	if got, err := b.coordinator.store.get(t.Context(), m, 3*partSize); err != nil || len(got) != 1 || len(got[0].Data) != len(zeros[0].Data) {
		t.Errorf("got %d files, error %v; want the file", len(got), err)
	}
}

// The bytes of the checkpoint arrive as they were sent, but no training can read them.
func TestATrialWithAnUnreadableCheckpointBeginsAgain(t *testing.T) {
	t.Parallel()
	want := alone(t, single)
	state := func(valid bool) []byte {
		files, _ := runOf(t, single)
		if valid {
			return find(files, folder.State)
		}
		return []byte("not a state")
	}
	for name, damaged := range map[string][]folder.File{
		"config": {{Name: folder.Config, Data: []byte("garbage")}, {Name: folder.State, Data: state(true)}},
		"state":  {{Name: folder.Config, Data: []byte(single)}, {Name: folder.State, Data: state(false)}},
		"whole":  {{Name: folder.Metrics, Data: []byte("{}\n")}},
	} {
		ctx, stop := context.WithCancel(context.Background())
		b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
		ended := b.run(ctx)
		c, trial := b.coordinator, b.sweep.Trials[0]
		b.until("the trial is in the queue", func() bool {
			info, err := c.work.Info(ctx)
			return err == nil && info.State.Msgs > 0
		})
		sent, err := c.store.put(ctx, "damaged", damaged)
		fatal.If(t, err)
		fatal.If(t, expect.Err(c.records.change(ctx, trial.ID, func(r *record) bool { r.Step, r.Checkpoint = 3, sent; return true })))
		b.worker(ctx, WorkerOptions{})
		expect.NoError(t, <-ended, name)
		stop()
		b.workers.Wait()
		if !b.said("it begins again") {
			t.Errorf("%s: the log does not say that the trial begins again: %q", name, b.lines)
		}
		same(t, files(t, b.out), want)
	}
}

// slowDisk records whether this process still has the trial while its folder is removed.
type slowDisk struct {
	folder.OS
	removing func(path string)
}

func (d *slowDisk) RemoveAll(path string) error {
	d.removing(path)
	return d.OS.RemoveAll(path)
}

func TestATrialIsNotTakenAgainWhileItsFolderIsRemoved(t *testing.T) {
	var w *worker
	var removed, taken atomic.Int64
	disk := &slowDisk{removing: func(path string) {
		if trial := filepath.Base(path); isID(trial) && trial != w.self.ID {
			removed.Add(1)
			if !(&serving{worker: w}).busy(trial) {
				taken.Add(1)
			}
		}
	}}
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	w, err := newWorker(WorkerOptions{URL: b.address(), Cache: filepath.Join(t.TempDir(), "cache"), Jobs: 1, Disk: disk, Log: b.log})
	fatal.If(t, err)
	b.workers.Go(func() { _ = w.work(ctx) })
	expect.NoError(t, <-ended)
	stop()
	b.workers.Wait()
	if removed.Load() == 0 || taken.Load() > 0 {
		t.Errorf("the folder of the trial was removed %d times, and could be taken by another slot %d times", removed.Load(), taken.Load())
	}
}

func TestASecondOutageHasTheWholePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outage
		var failed atomic.Int32
		begin := func() { o.begin(func() { failed.Add(1) }) }
		begin()
		time.Sleep(patience - time.Minute)
		o.end()
		begin()
		time.Sleep(patience - time.Minute)
		if failed.Load() > 0 {
			t.Errorf("an outage of %v counts from one that had ended", patience-time.Minute)
		}
		time.Sleep(2 * time.Minute)
		expect.Equal(t, failed.Load(), 1, "an outage of", patience+time.Minute, "has failed the sweep")
		o.end()
	})
}

func TestASweepIsFailedByItsTrialsAlone(t *testing.T) { // The worker sends more data than a run can have.
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	most := largestRun(b.sweep.Standalone(b.sweep.Trials[0]))
	b.worker(ctx, WorkerOptions{fake: func(ctx context.Context, _ *store, w *task) (*manifest, error) {
		m := &manifest{Files: []entry{{Name: evalFile, SHA256: sum(nil)}}}
		for i := 0; m.Files[0].Size <= most; i++ {
			m.Files[0].Size += partSize
			m.Parts = append(m.Parts, piece{Object: fmt.Sprintf("x.%d", i), Size: partSize, SHA256: sum(nil)})
		}
		return m, nil
	}})
	var failed *sweep.Failed
	if err := <-ended; !errors.As(err, &failed) || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("got %v, want a failed trial", err)
	}
	stop()
	b.workers.Wait()
}
