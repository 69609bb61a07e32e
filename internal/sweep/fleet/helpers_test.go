package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/samefiles"
	"tessera/internal/sweep"
)

// declared declares a sweep of eight small trials, two of which diverge, with noise, a shorter last batch, and a
// checkpoint after every epoch.
const declared = `
[model.small]
about = "a line for people"
dataset = { name = "bars", count = 100 }
encoder = [{ kind = "gaussian_noise" }, { kind = "dense", units = 6, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
train = { epochs = 4, batch = 32, checkpoint_seconds = 0 }

[sweep.s]
model = "small"
seeds = [1, 2]
set.loss.1.target = [0.1, 0.3]
set.optimizer.learning_rate = [0.01, 1e30]
`

func spec(t testing.TB, text string) *config.Sweep {
	t.Helper()
	f, err := config.Load("models.toml", []byte(text))
	fatal.If(t, err)
	s, err := f.Sweep("s")
	fatal.If(t, err)
	return s
}

// files returns, by path, every file of a sweep that does not depend on times and machines.
func files(t testing.TB, path string) map[string]string {
	t.Helper()
	all, err := samefiles.Files(path)
	fatal.If(t, err)
	return all
}

// same fails the test unless two sweeps have the same files.
func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	if len(want) == 0 {
		t.Error("nothing to compare with")
	}
	expect.NoError(t, samefiles.Differ(got, want, false))
}

// alone runs the sweep on this machine and returns its files.
func alone(t testing.TB, text string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alone")
	s, err := sweep.New(context.Background(), spec(t, text), sweep.Options{Out: path})
	fatal.If(t, err)
	var failed *sweep.Failed
	if _, err := s.Run(context.Background()); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return files(t, path)
}

// bench is a sweep with a coordinator and workers in this process.
type bench struct {
	testing.TB
	out         string
	coordinator *Coordinator
	sweep       *sweep.Sweep
	mu          sync.Mutex
	lines       []string
	workers     sync.WaitGroup
	report      func(sweep.Event) // called with events; set it before run; may be nil
}

// newBench returns a sweep with a coordinator on a free port.
func newBench(t testing.TB, text, out string, o Options) *bench {
	t.Helper()
	b := &bench{TB: t, out: out}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Lease == 0 {
		o.Lease = 10 * time.Second
	}
	o.Log = b.log
	b.coordinator = NewCoordinator(o)
	s, err := sweep.New(context.Background(), spec(t, text), sweep.Options{Out: out, Executor: b.coordinator, Report: func(e sweep.Event) {
		if b.report != nil {
			b.report(e)
		}
	}})
	fatal.If(t, err)
	b.sweep = s
	return b
}

func (b *bench) log(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
}

// said reports whether a line of the log contains a text.
func (b *bench) said(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.lines, "\n"), text)
}

// run runs the sweep in the background. The returned channel receives the error at the end.
func (b *bench) run(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := b.sweep.Run(ctx)
		b.log(fmt.Sprintf("the sweep ended: listening on nothing: %v", err))
		ended <- err
	}()
	b.until("the coordinator listens", func() bool { return b.said("listening on") })
	return ended
}

// address returns the URL of the server.
func (b *bench) address() string { return "nats://" + b.coordinator.server.Addr().String() }

// until waits until the function holds returns true. The text what describes the condition.
func (b *bench) until(what string, holds func() bool) {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waited for five minutes: %s; the log:\n%s", what, strings.Join(b.lines, "\n"))
		}
	}
}

// worker starts a worker. The returned channel receives its error at the end.
func (b *bench) worker(ctx context.Context, o WorkerOptions) <-chan error {
	ended := make(chan error, 1)
	if o.URL == "" {
		o.URL = b.address()
	}
	if o.Cache == "" {
		o.Cache = filepath.Join(b.TempDir(), "cache")
	}
	if o.Jobs == 0 {
		o.Jobs = 1
	}
	o.Log = b.log
	b.workers.Go(func() { ended <- Work(ctx, o) })
	return ended
}
