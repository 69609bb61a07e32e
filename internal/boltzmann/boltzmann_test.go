package boltzmann

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// drawn returns a machine with random parameters.
func drawn(visible, hidden int, scale, deviation float64) *Machine {
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int) []float32 {
		x := lists.Of(n, func(int) float32 { return float32(scale * r.NormFloat64()) })
		return x
	}
	return &Machine{Weight: normal(visible * hidden), Bias: normal(hidden), VisibleBias: normal(visible), Deviation: deviation}
}

// negativeEnergy returns -E(v, h).
func negativeEnergy(m *Machine, v, h []float64) (e float64) {
	s2 := 1.0
	if m.Deviation > 0 {
		s2 = m.Deviation * m.Deviation
	}
	for i, x := range v {
		a := float64(m.VisibleBias[i])
		if m.Deviation > 0 {
			e -= (x - a) * (x - a) / (2 * s2)
		} else {
			e += a * x
		}
		for j, y := range h {
			e += x * float64(m.Weight[i*len(h)+j]) * y / s2
		}
	}
	for j, y := range h {
		e += float64(m.Bias[j]) * y
	}
	return e
}

func bits(state, n int) []float64 {
	x := lists.Of(n, func(i int) float64 { return float64(state >> i & 1) })
	return x
}

func TestLogZIsTheSumOverAllStates(t *testing.T) {
	for _, shape := range [][2]int{{5, 3}, {3, 5}, {4, 4}} {
		visible, hidden := shape[0], shape[1]
		m := drawn(visible, hidden, 1.5, 0)
		z := 0.0
		for v := range 1 << visible {
			p := 0.0
			x := make([]float32, visible)
			for i, b := range bits(v, visible) {
				x[i] = float32(b)
			}
			for h := range 1 << hidden {
				p += math.Exp(negativeEnergy(m, bits(v, visible), bits(h, hidden)))
			}
			expect.Near(t, math.Exp(-m.FreeEnergy(x))/p, 1, 1e-5, shape, "exp(-F", x, p)
			z += p
		}
		if got, err := m.LogZ(t.Context().Err); err != nil || math.Abs(got-math.Log(z)) > 1e-5 {
			t.Errorf("%v: log Z is %v (%v), want %v", shape, got, err, math.Log(z))
		}
	}
}

// The integral over two real visible units is a sum over a fine grid.
func TestLogZOfRealUnitsIsAnIntegral(t *testing.T) {
	m := drawn(2, 3, 0.8, 0.6)
	const step = 0.02
	z := 0.0
	for x := -8.0; x < 8; x += step {
		for y := -8.0; y < 8; y += step {
			z += math.Exp(-m.FreeEnergy([]float32{float32(x), float32(y)})) * step * step
		}
	}
	if got, err := m.LogZ(t.Context().Err); err != nil || math.Abs(got-math.Log(z)) > 1e-4 {
		t.Errorf("log Z is %v (%v), want %v", got, err, math.Log(z))
	}
	p := 0.0
	for h := range 8 {
		p += math.Exp(negativeEnergy(m, []float64{0.3, -0.7}, bits(h, 3)))
	}
	expect.Near(t, math.Exp(-m.FreeEnergy([]float32{0.3, -0.7}))/p, 1, 1e-5, "exp(-F)", p)
}

func streams(chain int) *rand.Rand { return rand.New(rand.NewPCG(7, uint64(chain))) }

func inTurn(n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

func TestAnnealingFindsLogZ(t *testing.T) {
	for name, m := range map[string]*Machine{"binary": drawn(9, 6, 1.2, 0), "wide": drawn(4, 9, 1, 0), "real": drawn(5, 4, 0.7, 0.8)} {
		want, err := m.LogZ(t.Context().Err)
		fatal.If(t, err)
		base := lists.Of(len(m.VisibleBias), func(int) float32 { return 0.3 })
		got, err := m.LogZByAnnealing(base, 200, 500, streams, inTurn, func() error { return nil })
		fatal.If(t, err)
		if !(got.Error > 0 && got.Error < 0.05) || math.Abs(got.LogZ-want) > 4*got.Error {
			t.Errorf("%s: log Z is %v ± %v, want %v", name, got.LogZ, got.Error, want)
		}
		// One temperature is importance sampling from the base machine: without bias, but with a large error.
		coarse, err := m.LogZByAnnealing(base, 200, 1, streams, inTurn, func() error { return nil })
		if err != nil || coarse.Error < 3*got.Error {
			t.Errorf("%s: with one temperature the error is %v (%v), want more than that with 500, %v", name, coarse.Error, err, got.Error)
		}
	}
}

// Without weights the estimate is exact for every number of temperatures.
func TestAnnealingIsExactWithoutWeights(t *testing.T) {
	m := drawn(6, 3, 1, 0)
	clear(m.Weight)
	clear(m.Bias)
	got, err := m.LogZByAnnealing(m.VisibleBias, 5, 3, streams, inTurn, func() error { return nil })
	want, _ := m.LogZ(t.Context().Err)
	if err != nil || math.Abs(got.LogZ-want) > 1e-6 || got.Error > 1e-6 {
		t.Errorf("log Z is %v ± %v (%v), want %v", got.LogZ, got.Error, err, want)
	}
}

func TestAnnealingCanBeCancelled(t *testing.T) {
	m := drawn(3, 2, 1, 0)
	expect.Is(t, expect.Err(m.LogZByAnnealing(m.VisibleBias, 2, 10, streams, inTurn, func() error { return context.Canceled })), context.Canceled)
}

func TestBetasRiseToOne(t *testing.T) {
	for _, n := range []int{1, 2, 28, 29, 30, 1000} {
		b := Betas(n)
		if len(b) != n || b[n-1] != 1 || b[0] <= 0 {
			t.Errorf("%d temperatures: %v", n, b)
		}
		for i := 1; i < n; i++ {
			if b[i] <= b[i-1] {
				t.Errorf("%d temperatures: number %d is %v after %v", n, i, b[i], b[i-1])
			}
		}
	}
}

// The frequencies of a long chain are the probabilities of the visible states.
func TestAChainVisitsStatesByTheirProbability(t *testing.T) {
	m := drawn(3, 2, 1, 0)
	z, err := m.LogZ(t.Context().Err)
	fatal.If(t, err)
	const steps = 40000
	c, r, counts := m.NewChain(), rand.New(rand.NewPCG(3, 4)), make([]float64, 8)
	for range steps {
		c.DrawHidden(r)
		c.DrawVisible(r)
		state := 0
		for i, v := range c.Visible {
			state |= int(v) << i
		}
		counts[state] += 1.0 / steps
	}
	for state, got := range counts {
		v := make([]float32, 3)
		for i, b := range bits(state, 3) {
			v[i] = float32(b)
		}
		expect.Near(t, got, math.Exp(-m.FreeEnergy(v)-z), 0.015, "state", v, "has the frequency")
	}
}

func TestLogZIsCancelledBetweenStates(t *testing.T) {
	for _, m := range []*Machine{drawn(30, 12, 1, 0), drawn(12, 30, 1, 0), drawn(2, 12, 1, 1)} { // over hidden and visible units
		calls, stop := 0, errors.New("stop")
		_, err := m.LogZ(func() error {
			if calls++; calls == 3 {
				return stop
			}
			return nil
		})
		expect.Equal(t, err, stop)
		expect.Equal(t, calls, 3)
	}
}

func TestLogZRefusesLargeMachines(t *testing.T) {
	for _, m := range []*Machine{drawn(30, 23, 1, 0), drawn(2, 23, 1, 1)} {
		expect.Error(t, expect.Err(m.LogZ(t.Context().Err)), "want at most 22")
	}
}
