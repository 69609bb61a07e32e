//go:build unix

package train

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/mpi"
	"tessera/internal/parallel/team"
)

// In place of an optimizer, the name encode selects a benchmark that encodes images, asDeclared the optimizer that the model declares,
// onTape adam on Gorgonia's own machine, long samples of 256 tokens, and lstm a recurrent layer of that kind.
const (
	encode     = "encode"
	onTape     = "tape"
	asDeclared = "declared"
	long       = "long"
	lstm       = "lstm"
	encoded    = 10_000
)

// benchmarked lists the steps that bench compares with other programs: a model of models.toml, and an optimizer or a name in its place.
var benchmarked = []struct{ model, optimizer string }{
	{"shallow-nonneg-kl", "adadelta"},
	{"shallow-nonneg-kl", "adam"},
	{"shallow-nonneg-kl", onTape},
	{"shallow-nonneg-kl", encode},
	{"deep-dense", "adam"},
	{"asym-nonneg-kl", "adam"},
	{"asym-nonneg-kl", encode},
	{"simclr", asDeclared},
	{"byol", asDeclared},
	{"vicreg", asDeclared},
	{"vae", asDeclared},
	{"vit-classifier", asDeclared},
	{"masked-autoencoder", asDeclared},
	{"gru-mini", asDeclared},
	{"gru-mini", lstm},
	{"gpt-mini", long},
	{"dense-wide", asDeclared},
	{"convolutional", asDeclared},
}

// shapes are models to time that are not shipped.
const shapes = `
[model.dense-wide]
encoder    = [{ kind = "dense", units = 4096, activation = "relu" }]
decoder    = [{ kind = "dense" }]
loss       = [{ kind = "mse" }, { kind = "l1", weight = 1e-4 }]
constraint = [{ kind = "unit_norm", on = "decoder.*.weight" }]
optimizer  = { kind = "adam" }
train      = { epochs = 1000, batch = 128 }

[model.convolutional]
encoder   = [
  { kind = "conv2d", filters = 32, kernel = 3, stride = 2, padding = 1, activation = "relu" },
  { kind = "conv2d", filters = 64, kernel = 3, stride = 2, padding = 1, activation = "relu" },
  { kind = "conv2d", filters = 128, kernel = 3, stride = 2, padding = 1, activation = "relu" },
  { kind = "flatten" },
  { kind = "dense", units = 64 },
]
decoder   = [{ kind = "dense" }]
loss      = [{ kind = "mse" }]
optimizer = { kind = "adam" }
train     = { epochs = 1000, batch = 128 }
`

// benchmarkedModel returns a benchmarked model with the given optimizer, or with its declared optimizer.
func benchmarkedModel(b *testing.B, model, optimizer string) *config.Model {
	b.Helper()
	text, err := os.ReadFile("../../models.toml")
	fatal.If(b, err)
	file, err := config.Load("models.toml", slices.Concat(text, []byte(shapes)))
	fatal.If(b, err)
	var sets []config.Set
	if optimizer != asDeclared {
		change := "optimizer.kind=" + optimizer
		switch optimizer {
		case long:
			change = "dataset.length=256"
		case lstm:
			change = "encoder.1.cell=lstm"
		}
		set, err := config.ParseSet(change)
		fatal.If(b, err)
		sets = append(sets, set)
	}
	spec, err := file.Model(model, sets...)
	fatal.If(b, err)
	return spec
}

// BenchmarkStep times whole training steps: the next batch, forward, backward, the optimizer, the projection. It
// reports the medians by the clock and in CPU time, as bench/torch_twins.py does.
func BenchmarkStep(b *testing.B) {
	if os.Getenv("TESSERA_DATA") == "" {
		b.Skip("left out: TESSERA_DATA is not set")
	}
	for _, of := range benchmarked {
		for _, threads := range []int{1, 2} {
			b.Run(of.model+"/"+of.optimizer+"/threads="+string(rune('0'+threads)), func(b *testing.B) {
				switch of.optimizer {
				case encode:
					benchmarkEncode(b, benchmarkedModel(b, of.model, "adam"), threads)
				case onTape:
					benchmarkStep(b, benchmarkedModel(b, of.model, "adam"), threads, nil, tape.Backend{})
				default:
					benchmarkStep(b, benchmarkedModel(b, of.model, of.optimizer), threads, nil, nil)
				}
			})
		}
	}
}

// BenchmarkProcesses times training steps in the processes that an MPI launcher starts, or in a single process without a
// launcher. Package bench compares both.
func BenchmarkProcesses(b *testing.B) {
	if os.Getenv("TESSERA_DATA") == "" {
		b.Skip("left out: TESSERA_DATA is not set")
	}
	var group collective.Group
	if _, ok := mpi.Launched(); ok {
		joined, err := mpi.Join(mpi.Options{})
		fatal.If(b, err)
		defer joined.Close()
		group = joined
	}
	for _, model := range []string{"shallow-nonneg-kl", "simclr", "asym-nonneg-kl"} {
		for _, threads := range []int{1, 2} {
			b.Run(model+"/threads="+string(rune('0'+threads)), func(b *testing.B) {
				benchmarkStep(b, benchmarkedModel(b, model, asDeclared), threads, group, nil)
			})
		}
	}
}

// benchmarkStep times the steps of a training on a back end, nil for the engine.
func benchmarkStep(b *testing.B, spec *config.Model, threads int, group collective.Group, backend ir.Backend) {
	team := team.New(threads)
	defer team.Close()
	if backend == nil {
		backend = engine.Backend{Team: team, Group: group}
	}
	o := Options{Backend: backend, Team: team, Dirs: data.SearchDirs(""), Group: group}
	s, splits, err := newSession(context.Background(), spec, o, nil)
	fatal.If(b, err)
	defer s.close()
	fatal.If(b, s.learner.begin(context.Background(), splits, true))
	var clock, processor []time.Duration
	for b.Loop() {
		began, used := time.Now(), processorTime(b)
		fatal.If(b, s.learner.(*network).step())
		clock, processor = append(clock, time.Since(began)), append(processor, processorTime(b)-used)
		if s.progress.Position == s.images.Len() {
			s.progress.Epoch++
			s.progress.Position = 0
		}
	}
	slices.Sort(clock)
	slices.Sort(processor)
	b.ReportMetric(clock[len(clock)/2].Seconds()*1e3, "ms/step")
	b.ReportMetric(processor[len(processor)/2].Seconds()*1e3, "cpu-ms/step")
}

// processorTime returns the CPU time of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	fatal.If(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchmarkEncode times encoding images in memory by a library call.
func benchmarkEncode(b *testing.B, spec *config.Model, threads int) {
	team := team.New(threads)
	defer team.Close()
	backend := engine.Backend{Team: team}
	s, _, err := newSession(context.Background(), spec, Options{Backend: backend, Team: team, Dirs: data.SearchDirs("")}, nil)
	fatal.If(b, err)
	defer s.close()
	indices := lists.Range(0, encoded)
	images := make([]float32, encoded*s.images.Pixels())
	s.images.Batch(images, indices)
	coder := graph.NewCoder(s.learner.(*network).model, backend)
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		fatal.If(b, expect.Err(coder.Encode(images)))
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1e3, "ms/step")
}
