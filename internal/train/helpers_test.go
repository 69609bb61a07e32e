package train

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	_ "tessera/internal/testheap"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

// everything declares a model with all features that are difficult to resume: Adam, noise, dropout, shuffling, a smaller last
// batch, a constraint on whole parameters, validation, early stopping (never triggered), a checkpoint after every epoch.
const everything = `
[model.everything]
dataset = { name = "bars", count = 150, validation = 0.25 }

[[model.everything.encoder]]
kind = "gaussian_noise"
[[model.everything.encoder]]
kind = "dropout"
rate = 0.2
[[model.everything.encoder]]
kind = "dense"
units = 8
activation = "sigmoid"

[[model.everything.loss]]
kind = "mse"
[[model.everything.loss]]
kind = "kl"
weight = 0.001
[[model.everything.loss]]
kind = "weight_decay"
weight = 0.0001

[[model.everything.constraint]]
kind = "nonneg"
[[model.everything.constraint]]
kind = "max_norm"
on = "encoder.*.weight"

[model.everything.optimizer]
kind = "adam"
learning_rate = 0.01
clip_norm = 0.05
schedule = { kind = "cosine", warmup_epochs = 0.5 }

[model.everything.train]
epochs = 4
batch = 32
checkpoint_seconds = 0

[model.everything.hook.early_stopping]
patience = 100
`

// model returns the single model of a TOML text.
func model(t testing.TB, text string, sets ...string) *config.Model {
	t.Helper()
	f, err := config.Load("models.toml", []byte(text))
	fatal.If(t, err)
	var parsed []config.Set
	for _, argument := range sets {
		s, err := config.ParseSet(argument)
		fatal.If(t, err)
		parsed = append(parsed, s)
	}
	m, err := f.Model(f.Names()[0], parsed...)
	fatal.If(t, err)
	return m
}

// place returns an unused path for a run.
func place(t testing.TB) string { return filepath.Join(t.TempDir(), "run") }

// trained trains a model to its end and returns the result.
func trained(t testing.TB, m *config.Model, o Options) *Result {
	t.Helper()
	if o.Backend == nil {
		o.Backend = tape.Backend{}
	}
	if o.Out == "" {
		o.Out = place(t)
	}
	if o.Disk == nil {
		o.Disk = &faulty.Disk{}
	}
	r, err := Run(context.Background(), m, o)
	fatal.If(t, err)
	return r
}

// read returns the contents of a file of a run.
func read(t testing.TB, run, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, name))
	fatal.If(t, err)
	return b
}

// exists reports whether a run contains a file.
func exists(run, name string) bool {
	_, err := os.Stat(filepath.Join(run, name))
	return err == nil
}

// lines returns the objects of metrics.jsonl.
func lines(t testing.TB, run string) (objects []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(read(t, run, folder.Metrics)) {
		var o map[string]any
		fatal.If(t, json.Unmarshal(line, &o), "metrics line", len(objects)+1)
		objects = append(objects, o)
	}
	return objects
}

// sameRun fails unless the files of two runs have the same bytes, apart from times.
func sameRun(t testing.TB, got, want string) {
	t.Helper()
	sameResult(t, got, want)
	for _, name := range []string{folder.State, folder.Config} {
		if !bytes.Equal(read(t, got, name), read(t, want, name)) {
			t.Errorf("%s differs", name)
		}
	}
}

// sameResult fails unless two runs have the same parameters and metrics, apart from times.
func sameResult(t testing.TB, got, want string) {
	t.Helper()
	for _, name := range []string{folder.Model, folder.Best} {
		if name == folder.Best && !exists(got, name) && !exists(want, name) {
			continue
		}
		if !bytes.Equal(read(t, got, name), read(t, want, name)) {
			t.Errorf("%s differs", name)
		}
	}
	a, b := lines(t, got), lines(t, want)
	if len(a) != len(b) {
		t.Fatalf("metrics have %d lines, want %d", len(a), len(b))
	}
	for i := range a {
		for _, o := range []map[string]any{a[i], b[i]} {
			delete(o, "seconds")
			delete(o, "images_per_second")
			delete(o, "crc32") // which is over the times too
		}
		x, _ := json.Marshal(a[i])
		y, _ := json.Marshal(b[i])
		expect.Equal(t, string(x), string(y), "metrics line", i+1)
	}
}

// hooked is a back end that calls a function before and after every run of a training program.
type hooked struct {
	ir.Backend
	before func(run int)
	after  func(run int, p *graph.Program, r ir.Runner[float32])
	count  *atomic.Int64
}

// newHooked returns the reference back end.
func newHooked() hooked { return hooked{Backend: tape.Backend{}, count: new(atomic.Int64)} }

// cancelledAt returns a context that ends at a run of a training program, and a back end that ends it. The base of the back end
// is b.
func cancelledAt(at int, b ir.Backend) (context.Context, hooked) {
	ctx, cancel := context.WithCancel(context.Background())
	h := newHooked()
	h.Backend = b
	h.before = func(n int) {
		if n == at {
			cancel()
		}
	}
	return ctx, h
}

func (h hooked) Compile(source ir.Program) (ir.Runner[float32], error) {
	p := source.(*graph.Program)
	r, err := h.Backend.Compile(p)
	for _, b := range p.Parameters {
		if b.Gradient != nil {
			return &hookedRunner{r, p, h}, err
		}
	}
	return r, err
}

type hookedRunner struct {
	ir.Runner[float32]
	program *graph.Program
	hooked
}

func (r *hookedRunner) Run() error {
	n := int(r.count.Add(1))
	if r.before != nil {
		r.before(n)
	}
	err := r.Runner.Run()
	if r.after != nil && err == nil {
		r.after(n, r.program, r.Runner)
	}
	return err
}

// uniform draws from [0,1).
type uniform struct{}

func (uniform) Sample(dst []float32, r *rand.Rand) {
	for i := range dst {
		dst[i] = r.Float32()
	}
}
