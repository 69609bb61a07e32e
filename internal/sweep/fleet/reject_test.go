package fleet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
)

// single declares a sweep of one trial.
var single = strings.NewReplacer("seeds = [1, 2]", "seeds = [1]", "[0.1, 0.3]", "[0.1]", "[0.01, 1e30]", "[0.01]").Replace(declared)

func TestATrialWhoseResultsCannotBeUsedEndsAsFailed(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	var tries atomic.Int64
	b.worker(ctx, WorkerOptions{fake: func(ctx context.Context, s *store, w *task) (*manifest, error) {
		tries.Add(1)
		return s.put(ctx, w.Trial, []folder.File{{Name: evalFile, Data: []byte("of a faulty disk")}})
	}})
	var failed *sweep.Failed
	select {
	case err := <-ended:
		if !errors.As(err, &failed) || tries.Load() != mostFailures || !strings.Contains(err.Error(), "cannot be used; that of "+host()) {
			t.Errorf("got %v after %d tries, want a failed trial that names the worker after %d", err, tries.Load(), mostFailures)
		}
	case <-time.After(10 * time.Minute):
		t.Errorf("the trial was done %d times and does not end", tries.Load())
	}
	stop()
	b.workers.Wait()
}

// runOf returns the files of a finished trial of another sweep, and the matching result.
func runOf(t *testing.T, text string) ([]folder.File, *result) {
	t.Helper()
	s, err := sweep.New(context.Background(), spec(t, text), sweep.Options{Out: filepath.Join(t.TempDir(), "other")})
	fatal.If(t, err)
	fatal.If(t, expect.Err(s.Run(context.Background())))
	a := &attempt{dir: s.Trials[0].Path}
	files, err := a.files()
	fatal.If(t, err)
	return files, &result{Digest: sum(find(files, evalFile)), Worker: "faulty-1"}
}

func TestTheRunOfAnotherTrialIsNotInstalled(t *testing.T) {
	files, r := runOf(t, strings.Replace(single, "[0.1]", "[0.2]", 1))
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	b.coordinator.sweep = b.sweep
	trial := b.sweep.Trials[0]
	expect.AnyError(t, b.coordinator.installResult(trial, r, files), "it was accepted")
	if trial.Begun() {
		t.Error("workers would continue from it")
	}
	files, r = runOf(t, single)
	expect.NoError(t, b.coordinator.installResult(trial, r, files), "the run of the trial itself")
}

func TestAWorkerThatGaveATrialUpDoesNotContradictItsResult(t *testing.T) {
	files, r := runOf(t, single)
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	c := b.coordinator
	c.sweep = b.sweep
	trial := b.sweep.Trials[0]
	fatal.If(t, c.installResult(trial, r, files))
	c.compare(trial, &result{Worker: "without memory", Problem: "failed 3 times", GaveUp: true})
	if c.broken != nil {
		t.Errorf("got %v, want no difference: the problem is one of the machine", c.broken)
	}
	c.mixed = true
	c.compare(trial, &result{Worker: "with other kernels", Digest: "of other last bits"})
	if c.broken != nil || !b.said("result of with other kernels differs") {
		t.Errorf("got %v, want a line in the log: workers have different kernels", c.broken)
	}
	c.compare(trial, &result{Worker: "other", Problem: "the training has diverged"})
	if c.broken == nil {
		t.Error("another end of the training is no difference")
	}
}

func TestATrialThatIsGivenOutAgainKeepsItsTries(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{})
	ended := b.run(ctx)
	c, trial := b.coordinator, b.sweep.Trials[0]
	b.until("the trial is in the queue", func() bool {
		info, err := c.work.Info(ctx)
		return err == nil && info.State.Msgs > 0
	})
	told, err := c.task(trial)
	fatal.If(t, err)
	w := &waiting{task: told, digest: sum(nil)}
	for first, want := range map[bool]int{false: 2, true: 0} {
		fatal.If(t, expect.Err(c.records.change(ctx, trial.ID, func(r *record) bool {
			r.Step, r.Checkpoint, r.Tries = 7, someRun(), []try{{Worker: "a"}, {Worker: "b"}}
			return true
		})))
		fatal.If(t, c.offer(ctx, trial, w, first))
		r, _, err := c.records.get(ctx, trial.ID)
		if err != nil || len(r.Tries) != want || r.Step != 7 {
			t.Errorf("first %v: the record is %+v (%v), want %d tries", first, r, err, want)
		}
	}
	stop()
	<-ended
}

func TestAWorkerSaysHelloWhileItGivesItsTrialsBack(t *testing.T) {
	t.Parallel()
	b, end := served(t, Options{})
	defer end()
	conn, err := nats.Connect(b.address())
	fatal.If(t, err)
	defer conn.Close()
	var began, leaving atomic.Bool
	var heard atomic.Int64
	fatal.If(t, expect.Err(conn.Subscribe(b.coordinator.names.subject("hello"), func(*nats.Msg) {
		if leaving.Load() {
			heard.Add(1)
		}
	})))
	ctx, leave := context.WithCancel(context.Background())
	release := make(chan struct{})
	ended := b.worker(ctx, WorkerOptions{fake: func(ctx context.Context, _ *store, _ *task) (*manifest, error) {
		began.Store(true)
		<-release // the last batch takes a long time
		return nil, ctx.Err()
	}})
	b.until("the trial has begun", began.Load)
	leave()
	leaving.Store(true)
	b.until("the worker is heard", func() bool { return heard.Load() > 2 }) // more than 2, because one hello may already have been on its way
	close(release)
	<-ended
}

func TestAUsedAddressIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	b := newBench(t, single, filepath.Join(t.TempDir(), "s"), Options{Listen: l.Addr().String()})
	_, err = b.sweep.Run(context.Background())
	expect.Is(t, err, ErrAddress)
	expect.Error(t, err, l.Addr().String())
	expect.AnyError(t, expect.Err(os.Stat(filepath.Join(b.out, sweep.FleetDir, "queue"))), "the queue was begun")
}

func TestMessagesDoNotShowThePasswordOfAURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"nats://secret@h:1": "nats://h:1", "tls://user:secret@h:1": "tls://h:1", "nats://h:1": "nats://h:1", "nats://[::1]:1": "nats://[::1]:1",
	} {
		expect.Equal(t, shown(address), want, address)
	}
	b := &bench{TB: t}
	err := <-b.worker(context.Background(), WorkerOptions{URL: "nats://secret@127.0.0.1:1", Wait: time.Millisecond})
	if err == nil || strings.Contains(err.Error(), "secret") || b.said("secret") {
		t.Errorf("got %v, the log has the secret: %v", err, b.said("secret"))
	}
}

func TestTheAddressForWorkersIsOneOfThisMachine(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for address, want := range map[string]string{"0.0.0.0:4222": name + ":4222", "[::]:1": name + ":1", "127.0.0.1:1": "127.0.0.1:1", "[::1]:1": "[::1]:1", "h:1": "h:1"} {
		expect.Equal(t, reached(address), want, address)
	}
}

func TestAWorkerJoinsAgainWhatHasChanged(t *testing.T) {
	first, second := newID(), newID()
	s := &serving{names: names{first}, lease: 30 * time.Second}
	for _, c := range []struct {
		answer welcome
		want   bool
	}{
		{welcome{Sweep: first, State: stateRun, Lease: 30000}, true},
		{welcome{Sweep: first, State: stateRun, Lease: 2000}, false}, // with the old lease the worker would lose its trials
		{welcome{Sweep: second, State: stateRun, Lease: 30000}, false},
		{welcome{Sweep: first, State: stateCancel, Lease: 30000}, false},
	} {
		expect.Equal(t, s.continues(&c.answer), c.want, c.answer)
	}
}
