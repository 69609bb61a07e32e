package metrics_test

import (
	"math"
	"runtime"
	"testing"

	"tessera/internal/boltzmann"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

func init() {
	others["dbn_bound"] = []metrics.Metric{&metrics.DBNBound{Chains: 3, Temperatures: 20, Seed: 2}}
}

// deepCoder is a deep belief net.
type deepCoder struct {
	metrics.Coder
	machines []*boltzmann.Machine
}

// DeepBelief implements [metrics.DeepBelief].
func (c deepCoder) DeepBelief() ([]*boltzmann.Machine, error) {
	if c.machines == nil {
		return nil, metrics.ErrNoDeepBelief
	}
	return c.machines, nil
}

// bounded returns the values of a metric of a deep belief net for images of 4 pixels, in two batches.
func bounded(t *testing.T, m metrics.Metric, machines []*boltzmann.Machine, images []float32) []metrics.Value {
	t.Helper()
	return valuesOf(t, m, deepCoder{machines: machines}, images)
}

// A second machine that is the first one upside down leaves the distribution as it is, and the bound is tight.
func TestTheBoundOfAMachineUpsideDownIsItsLogLikelihood(t *testing.T) {
	first := smallMachine()
	second := &boltzmann.Machine{Weight: make([]float32, 12), Bias: first.VisibleBias, VisibleBias: first.Bias}
	for i := range 4 {
		for j := range 3 {
			second.Weight[j*4+i] = first.Weight[i*3+j]
		}
	}
	images := []float32{1, 0, 1, 0, 0, 1, 1, 1, 0.5, 0.2, 0, 1}
	exact := measuredBy(t, &metrics.RBMExact{Seed: 3}, first, images)
	got := bounded(t, &metrics.DBNBound{Chains: 200, Temperatures: 300, Seed: 3}, []*boltzmann.Machine{first, second}, images)
	if standard := got[2].Number; !(standard > 0 && standard < 0.02) || math.Abs(got[0].Number-exact[0].Number) > 4*standard ||
		math.Abs(got[1].Number-exact[1].Number) > 4*standard {
		t.Errorf("got %v, want %v within 4 standard errors", got, exact)
	}
}

func TestOtherModelsHaveNoBound(t *testing.T) {
	for _, v := range bounded(t, &metrics.DBNBound{Chains: 2, Temperatures: 1}, nil, make([]float32, 8)) {
		expect.Contains(t, v.Missing, "not a deep belief net", v)
	}
}

// The weights are transposed once, not for every batch: a batch allocates less than the weights of one machine.
func TestABatchDoesNotTransposeTheWeightsAgain(t *testing.T) {
	const visible, hidden = 2000, 200
	first := &boltzmann.Machine{Weight: make([]float32, visible*hidden), Bias: make([]float32, hidden), VisibleBias: make([]float32, visible)}
	second := &boltzmann.Machine{Weight: make([]float32, hidden), Bias: make([]float32, 1), VisibleBias: make([]float32, hidden)}
	meter, err := (&metrics.DBNBound{Chains: 2, Temperatures: 1}).Start(&metrics.Subject{Coder: deepCoder{machines: []*boltzmann.Machine{first, second}}})
	fatal.If(t, err)
	batch := &metrics.Batch{Images: make([]float32, visible)}
	least := uint64(math.MaxUint64) // of some batches: other goroutines allocate too
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fatal.If(t, meter.Add(batch))
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if weights := uint64(4 * visible * hidden); least > weights/4 {
		t.Errorf("a batch of one image allocates %d bytes, the weights have %d", least, weights)
	}
}
