//go:build unix

package sweep

import (
	"context"
	"flag"
	"slices"
	"syscall"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var rounds = flag.Int("plan-rounds", 0, "how often to compare the plan of a sweep with the sweep itself")

// measured declares a sweep of networks of three sizes, and of factorisations.
const measured = `
[model.net]
dataset = { name = "swimmer" }
encoder = [{ kind = "dense", units = 100, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
train = { epochs = 60, batch = 32 }
[model.factors]
kind = "nmf"
dataset = { name = "swimmer" }
components = 10
iterations = 100
tolerance = 0.0
[sweep.mixed]
model = ["net", "factors"]
seeds = [1, 2]
[sweep.mixed.for.net.set]
encoder.0.units = [50, 100, 200]
loss.1.weight = [0.001, 0.01]
[sweep.mixed.for.factors.set]
components = [10, 20]
`

// processor returns the CPU time of this process as a clock, which other processes hardly affect.
func processor() time.Time {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Time{}
	}
	return time.Unix(0, u.Utime.Nano()+u.Stime.Nano())
}

// TestAPlanBesideItsSweep compares the CPU time that a plan estimates with the CPU time of the sweep, for one trial at
// a time.
func TestAPlanBesideItsSweep(t *testing.T) {
	if *rounds == 0 {
		t.Skip("left out: a measurement; -plan-rounds 5 runs it")
	}
	var ratios []float64
	for range *rounds {
		s := open(t, spec(t, measured, "mixed"), Options{Out: t.TempDir(), Jobs: 1})
		p, err := s.Plan(context.Background(), PlanOptions{Now: processor})
		fatal.If(t, err)
		from := processor()
		fatal.If(t, expect.Err(s.Run(context.Background())))
		took := processor().Sub(from).Seconds()
		ratios = append(ratios, p.Seconds/took)
		t.Logf("plan %.2f s, sweep %.2f s, ratio %.3f", p.Seconds, took, p.Seconds/took)
	}
	slices.Sort(ratios)
	t.Logf("median ratio %.3f of %d", ratios[len(ratios)/2], len(ratios))
}
