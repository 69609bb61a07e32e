package engine

import (
	"slices"
	"testing"
	"time"

	"tessera/parallel/team"
)

// Two processes of one thread beside one process of two threads, in batches of 128; the processes are goroutines. The runs
// alternate, so that both see the same machine; the ratio is that of the medians.
func BenchmarkTwoProcessesBesideTwoThreads(b *testing.B) {
	for _, name := range []string{"shallow-nonneg-kl", "asym-nonneg-kl", "simclr", "residual-encoder"} {
		b.Run(name, func(b *testing.B) {
			c := newCrew[float32](b, shippedModel(b, name), 128, 2)
			whole, err := c.program.Module()
			if err != nil {
				b.Fatal(err)
			}
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

// middle is the median in microseconds.
func middle(times []time.Duration) float64 {
	return float64(slices.Sorted(slices.Values(times))[len(times)/2]) / float64(time.Microsecond)
}
