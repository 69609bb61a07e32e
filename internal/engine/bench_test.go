package engine

import (
	"slices"
	"testing"
	"time"

	"tessera/graph"
	"tessera/internal/engine/kernel"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// The benchmark compares two processes of one thread with one process of two threads, in batches of 128. The processes
// are goroutines. The runs alternate, so that both see the same machine. The reported ratio is the ratio of the
// medians.
func BenchmarkTwoProcessesBesideTwoThreads(b *testing.B) {
	for _, name := range []string{"shallow-nonneg-kl", "asym-nonneg-kl", "simclr", "residual-encoder"} {
		b.Run(name, func(b *testing.B) {
			c := newCrew[float32](b, shippedModel(b, name), 128, 2)
			whole, err := c.program.Module()
			fatal.If(b, err)
			pair := team.New(2)
			defer pair.Close()
			if c.alone, err = Compile[float32](whole, pair); err != nil {
				b.Fatal(err)
			}
			c.bind(b, 0)
			var threads, processes []time.Duration
			for b.Loop() {
				threads = append(threads, timed(func() { _ = c.alone.Run() }))
				processes = append(processes, timed(func() { c.run(b) }))
			}
			b.ReportMetric(middle(threads), "us/2-threads")
			b.ReportMetric(middle(processes), "us/2-processes")
			b.ReportMetric(middle(processes)/middle(threads), "ratio")
		})
	}
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// middle returns the median of times in microseconds.
func middle(times []time.Duration) float64 {
	return float64(slices.Sorted(slices.Values(times))[len(times)/2]) / float64(time.Microsecond)
}

// BenchmarkEncode encodes batches of 1000 images in memory with the shallow encoder, by a library call. For comparison
// it computes only the matrix product of that encoder, with the same kernels and team.
func BenchmarkEncode(b *testing.B) {
	const images = 1000
	team := team.New(2)
	defer team.Close()
	perSecond := func(b *testing.B) { b.ReportMetric(float64(b.N)*images/b.Elapsed().Seconds(), "images/s") }
	for _, spec := range shipped(b) {
		if spec.Name != "shallow" {
			continue
		}
		m := built(b, spec)
		coder := graph.NewCoder(m, Backend{Team: team})
		pixels, units := m.Pixels(), m.Units()
		batch, codes := make([]float32, images*pixels), make([]float32, images*units)
		for i := range batch {
			batch[i] = float32(i%256) / 255
		}
		b.Run("encode", func(b *testing.B) {
			for b.Loop() {
				fatal.If(b, expect.Err(coder.Encode(batch)))
			}
			perSecond(b)
		})
		b.Run("product", func(b *testing.B) {
			gemm, weight := kernel.Float32().Gemm, m.Parameters[0].Data
			work := func(thread int) {
				from, to := images*thread/2, images*(thread+1)/2
				gemm(false, false, to-from, units, pixels, 1, batch[from*pixels:], pixels, weight, units, 0, codes[from*units:], units)
			}
			for b.Loop() {
				team.Do(work)
			}
			perSecond(b)
		})
	}
}
