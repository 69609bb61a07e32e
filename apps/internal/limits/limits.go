// Package limits measures what a processor can do at most, and what kernels and programs reach of it.
package limits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/engine/kernel"
	"tessera/internal/hugepages"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// fastest runs a job for the given time or longer, and at least three times, and returns the seconds of the fastest run: other programs can
// only slow a run down.
func fastest(ctx context.Context, budget time.Duration, job func()) (float64, error) {
	best := time.Duration(-1)
	for began, runs := time.Now(), 0; runs < 3 || time.Since(began) < budget; runs++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		job()
		if took := time.Since(start); best < 0 || took < best {
			best = took
		}
	}
	return max(best.Seconds(), 1e-9), nil
}

// Peak returns the floating-point operations per second of fused multiply-adds in registers on all threads of a team, 0 without assembly.
func Peak(ctx context.Context, t *team.Team, budget time.Duration) (float64, error) {
	const rounds = 200_000
	var each float64
	seconds, err := fastest(ctx, budget, func() {
		t.Do(func(thread int) {
			if n := kernel.Peak(rounds); thread == 0 {
				each = n
			}
		})
	})
	return each * float64(t.Threads()) / seconds, err
}

// Product returns the floating-point operations per second of C = A B, where C has m x n elements and every sum k. The threads share
// the rows of C.
func Product(ctx context.Context, t *team.Team, m, n, k int, budget time.Duration) (float64, error) {
	a, b, c := numbers(m*k), numbers(k*n), make([]float32, m*n)
	gemm := kernel.Float32().Gemm
	seconds, err := fastest(ctx, budget, func() {
		t.Do(func(thread int) {
			from, to := m*thread/t.Threads(), m*(thread+1)/t.Threads()
			if from < to {
				gemm(false, false, to-from, n, k, 1, a[from*k:], k, b, n, 0, c[from*n:], n)
			}
		})
	})
	return 2 * float64(m) * float64(n) * float64(k) / seconds, err
}

// Triad returns the bytes per second of a = b + s c on arrays in main memory, counted as the benchmark STREAM counts them: two arrays read
// and one written. size is the number of float32 in an array.
func Triad(ctx context.Context, t *team.Team, size int, budget time.Duration) (float64, error) {
	a, b, c := hugepages.Make[float32](size), hugepages.Make[float32](size), hugepages.Make[float32](size)
	part := func(thread int) (from, to int) {
		const line = 1024
		return size / line * thread / t.Threads() * line, size / line * (thread + 1) / t.Threads() * line
	}
	t.Do(func(thread int) { // every thread writes its part first, so that it is in the memory next to its core
		from, to := part(thread)
		for _, x := range [][]float32{a, b, c} {
			kernel.Float32().Fill(x[from:to], 1)
		}
	})
	seconds, err := fastest(ctx, budget, func() {
		t.Do(func(thread int) {
			from, to := part(thread)
			kernel.Float32().AddScaled(a[from:to], b[from:to], c[from:to], 3)
		})
	})
	return 12 * float64(size) / seconds, err
}

// Step returns the seconds of the forward and the backward pass of one training step on random samples, without the optimizer, and
// their floating-point operations.
func Step(ctx context.Context, t *team.Team, m *graph.Model, budget time.Duration) (seconds, flops float64, err error) {
	p, err := m.Program(graph.Request{Batch: m.Spec.Train.Batch, Want: m.TrainingOutputs()})
	if err != nil {
		return 0, 0, err
	}
	module, err := p.Module()
	if err != nil {
		return 0, 0, err
	}
	plan, err := engine.Compile[float32](module, t)
	if err != nil {
		return 0, 0, err
	}
	defer plan.Close()
	for i, in := range p.Inputs {
		values := numbers(volume.Of(in.Shape))
		if in.Classes > 0 { // the sample's class is its number
			clear(values)
			for j := 0; j+in.Classes <= len(values); j += in.Classes {
				values[j+j/in.Classes%in.Classes] = 1
			}
		}
		if err := plan.Bind(i, values); err != nil {
			return 0, 0, fmt.Errorf("input %s: %w", in.Name, err)
		}
	}
	var times []float64
	for began := time.Now(); len(times) < 5 || time.Since(began) < budget; {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		start := time.Now()
		if err := plan.Run(); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start).Seconds())
	}
	slices.Sort(times)
	return times[len(times)/2], plan.Work(), nil
}

// numbers returns numbers between 0 and 1.
func numbers(n int) []float32 {
	x := lists.Of(n, func(i int) float32 { return float32(uint32(i)*2654435761>>8) / (1 << 24) })
	return x
}
