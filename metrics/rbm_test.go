package metrics_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"tessera/internal/boltzmann"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/metrics"
)

func init() {
	others["rbm_ais"] = []metrics.Metric{&metrics.RBMAIS{Chains: 3, Temperatures: 20, Seed: 2}}
	others["rbm_exact"] = []metrics.Metric{&metrics.RBMExact{Seed: 2}}
}

// energyCoder is a Boltzmann machine.
type energyCoder struct {
	metrics.Coder
	machine *boltzmann.Machine
}

// Boltzmann implements [metrics.Boltzmann].
func (c energyCoder) Boltzmann() (*boltzmann.Machine, error) {
	if c.machine == nil {
		return nil, metrics.ErrNoBoltzmann
	}
	return c.machine, nil
}

// smallMachine has 4 visible and 3 hidden units.
func smallMachine() *boltzmann.Machine {
	return &boltzmann.Machine{
		Weight:      []float32{1.2, -0.7, 0.3, -1.5, 0.4, 2, 0.6, 0.9, -0.2, -0.3, 1.1, -1.4},
		Bias:        []float32{0.5, -0.3, 0.1},
		VisibleBias: []float32{-0.4, 0.2, 0.7, -1},
	}
}

// measuredBy returns the values of a metric of a machine for images in two batches.
func measuredBy(t *testing.T, m metrics.Metric, machine *boltzmann.Machine, images []float32) []metrics.Value {
	t.Helper()
	return valuesOf(t, m, energyCoder{machine: machine}, images)
}

func valuesOf(t *testing.T, m metrics.Metric, coder metrics.Coder, images []float32) []metrics.Value {
	t.Helper()
	meter, err := m.Start(&metrics.Subject{Coder: coder})
	fatal.If(t, err)
	for _, part := range [][]float32{images[:4], images[4:]} {
		fatal.If(t, meter.Add(&metrics.Batch{Images: part}))
	}
	values, err := meter.Values(context.Background())
	fatal.If(t, err)
	return values
}

// The exact log-likelihood is that of loops over all states of all units, and annealed importance sampling agrees with it.
func TestLogLikelihoodsOfASmallMachine(t *testing.T) {
	m := smallMachine()
	images := []float32{1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0}
	joint := func(v []float32) (p float64) {
		for h := range 8 {
			e := 0.0
			for j := range 3 {
				on := float64(h >> j & 1)
				e += on * float64(m.Bias[j])
				for i := range v {
					e += float64(v[i]) * on * float64(m.Weight[i*3+j])
				}
			}
			for i, a := range m.VisibleBias {
				e += float64(a * v[i])
			}
			p += math.Exp(e)
		}
		return p
	}
	z, want := 0.0, 0.0
	for state := range 16 {
		v := lists.Of(4, func(i int) float32 { return float32(state >> i & 1) })
		z += joint(v)
	}
	for i := range 3 {
		want += (math.Log(joint(images[4*i:4*i+4])) - math.Log(z)) / 3
	}
	exact := measuredBy(t, &metrics.RBMExact{Seed: 1}, m, images)
	expect.Near(t, exact[0].Number, want, 1e-6, exact)
	expect.Near(t, exact[1].Number, math.Log(z), 1e-6, exact)
	ais := measuredBy(t, &metrics.RBMAIS{Chains: 200, Temperatures: 300, Seed: 1}, m, images)
	if standard := ais[2].Number; !(standard > 0 && standard < 0.02) || math.Abs(ais[0].Number-want) > 4*standard || math.Abs(ais[1].Number-math.Log(z)) > 4*standard {
		t.Errorf("annealing gives %v, want %v and %v within 4 standard errors", ais, want, math.Log(z))
	}
}

// Grey pixels are probabilities: the mean over many drawn images is the expectation over the binary ones.
func TestLogLikelihoodOfGreyImages(t *testing.T) {
	m := smallMachine()
	of := func(images []float32) float64 { return measuredBy(t, &metrics.RBMExact{Seed: 1}, m, images)[0].Number }
	black, white := []float32{0, 0, 1, 0}, []float32{1, 0, 1, 0}
	var grey, expected []float32
	for range 4000 {
		grey = append(grey, 0.25, 0, 1, 0)
		expected = append(expected, black...)
	}
	for i := range 1000 {
		copy(expected[16*i:], white)
	}
	expect.Near(t, of(grey), of(expected), 0.03, "grey images have the log-likelihood")
}

func TestOtherModelsHaveNoEnergy(t *testing.T) {
	for _, m := range []metrics.Metric{&metrics.RBMExact{}, &metrics.RBMAIS{Chains: 2, Temperatures: 1}} {
		for _, v := range measuredBy(t, m, nil, make([]float32, 8)) {
			expect.Contains(t, v.Missing, "not a restricted Boltzmann machine", v)
		}
	}
	large := &boltzmann.Machine{Weight: make([]float32, 23*23), Bias: make([]float32, 23), VisibleBias: make([]float32, 23)}
	meter, err := (&metrics.RBMExact{}).Start(&metrics.Subject{Coder: energyCoder{machine: large}})
	fatal.If(t, err)
	fatal.If(t, meter.Add(&metrics.Batch{Images: make([]float32, 23)}))
	values, err := meter.Values(context.Background())
	if err != nil || !strings.Contains(values[0].Missing, "want at most 22") {
		t.Errorf("a large machine gives %v (%v), want a value that is not applicable", values, err)
	}
}
