package hooks

import (
	"slices"

	"tessera/internal/engine/kernel"
)

// average is a moving average of all parameters of a model, including running averages of layers. Every step computes
//
//	a <- a + rate (w - a)
//
// where w are the weights after the step and its projection, and rate is 1 - decay.
type average struct {
	of     []*Parameter
	values [][]float32 // averages by parameter
	rate   float32     // weight of the new values in the current step
}

// movingAverage returns the functions of a hook with a moving average. rate returns the weight of w in a step.
func movingAverage(t Training, rate func(s *Step) float32) (*Active, *average) {
	m := &average{of: t.Parameters("*")}
	for _, p := range m.of {
		m.values = append(m.values, slices.Clone(p.Data))
	}
	scratch := make([]float32, 4096)
	return &Active{
		Initialise: func() error {
			for i, p := range m.of {
				copy(m.values[i], p.Data)
			}
			return nil
		},
		BeforeStep:  func(s *Step) error { m.rate = rate(s); return nil },
		AfterUpdate: m.update,
		AfterStep: func() error {
			for _, p := range m.of {
				if !p.Trainable && !p.Frozen { // updated by a rule of its layer
					m.update(p, p.Data, 0, scratch)
				}
			}
			return nil
		},
		Average: func(p *Parameter) []float32 { return m.values[p.Index] },
		Save:    func(s *State) { s.putAll(m.of, m.values) },
		Restore: func(s *State) error { return s.loadAll(m.of, m.values) },
	}, m
}

// update updates the averages in blocks of the size of scratch, which stay in the cache.
func (m *average) update(p *Parameter, w []float32, from int, scratch []float32) {
	average := m.values[p.Index][from : from+len(w)]
	k := kernel.Float32()
	for at := 0; at < len(w); at += len(scratch) {
		to := min(at+len(scratch), len(w))
		a, way := average[at:to], scratch[:to-at]
		k.Sub(way, w[at:to], a)
		k.AddScaled(a, a, way, m.rate)
	}
}
