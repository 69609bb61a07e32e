package train

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/graph"
	"tessera/team"
)

// encode in place of an optimizer means that a step encodes images.
const (
	encode  = "encode"
	encoded = 10_000
)

// benchmarked are the steps that bench compares with PyTorch's: a model of models.toml and an optimizer, or encode.
var benchmarked = []struct{ model, optimizer string }{
	{"shallow-nonneg-kl", "adadelta"},
	{"shallow-nonneg-kl", "adam"},
	{"deep-dense", "adam"},
	{"asym-nonneg-kl", "adam"},
	{"asym-nonneg-kl", encode},
}

// benchmarkedModel is one of them, on Fashion-MNIST.
func benchmarkedModel(b *testing.B, model, optimizer string) *config.Model {
	b.Helper()
	text, err := os.ReadFile("../models.toml")
	if err != nil {
		b.Fatal(err)
	}
	file, err := config.Load("models.toml", text)
	if err != nil {
		b.Fatal(err)
	}
	set, err := config.ParseSet("optimizer.kind=" + optimizer)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := file.Model(model, set)
	if err != nil {
		b.Fatal(err)
	}
	return spec
}

// BenchmarkStep times whole training steps: the next batch, forward, backward, the optimizer, the projection. It
// reports the median, as bench/torch_steps.py does.
func BenchmarkStep(b *testing.B) {
	if os.Getenv("TESSERA_DATA") == "" {
		b.Skip("left out: TESSERA_DATA is not set")
	}
	for _, of := range benchmarked {
		for _, threads := range []int{1, 2} {
			b.Run(of.model+"/"+of.optimizer+"/threads="+string(rune('0'+threads)), func(b *testing.B) {
				if of.optimizer == encode {
					benchmarkEncode(b, benchmarkedModel(b, of.model, "adam"), threads)
					return
				}
				benchmarkStep(b, benchmarkedModel(b, of.model, of.optimizer), threads)
			})
		}
	}
}

func benchmarkStep(b *testing.B, spec *config.Model, threads int) {
	team := team.New(threads)
	defer team.Close()
	s, splits, err := newSession(context.Background(), spec, Options{Backend: engine.Backend{Team: team}, Team: team, Dirs: data.SearchDirs("")}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	if err := s.learner.begin(context.Background(), splits, true); err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := s.learner.(*network).step(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
		if s.progress.Position == s.images.Len() {
			s.progress.Epoch++
			s.progress.Position = 0
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1e3, "ms/step")
}

// benchmarkEncode times the codes of images in memory, as a library call.
func benchmarkEncode(b *testing.B, spec *config.Model, threads int) {
	team := team.New(threads)
	defer team.Close()
	backend := engine.Backend{Team: team}
	s, _, err := newSession(context.Background(), spec, Options{Backend: backend, Team: team, Dirs: data.SearchDirs("")}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.close()
	indices := make([]int, encoded)
	for i := range indices {
		indices[i] = i
	}
	images := make([]float32, encoded*s.images.Pixels())
	s.images.Batch(images, indices)
	coder := graph.NewCoder(s.learner.(*network).model, backend)
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := coder.Encode(images); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1e3, "ms/step")
}
