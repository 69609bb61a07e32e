package hooks

import (
	"slices"

	"tessera/kernel"
)

// moving are values that follow all parameters of a model, running averages of layers included: in every step
//
//	a <- a + pull (w - a)
//
// with the weights w after the step and its projection.
type moving struct {
	of     []*Parameter
	values [][]float32 // by parameter
	pull   float32     // of the present step
}

// follow returns the running form of a hook that keeps such values. pull is how much of the way to the weights they go in the
// step of that number, from 1.
func follow(t Training, pull func(step int) float32) (*moving, *Active) {
	m := &moving{of: t.Parameters("*")}
	for _, p := range m.of {
		m.values = append(m.values, slices.Clone(p.Data))
	}
	scratch := make([]float32, 4096)
	return m, &Active{
		First: func() error {
			for i, p := range m.of {
				copy(m.values[i], p.Data)
			}
			return nil
		},
		BeforeStep: func(*Step) error { m.pull = pull(t.Step() + 1); return nil },
		Moved:      m.moved,
		AfterStep: func() error {
			for _, p := range m.of {
				if !p.Trainable && !p.Frozen { // moved by a rule of its layer
					m.moved(p, p.Data, 0, scratch)
				}
			}
			return nil
		},
		Follows: func(p *Parameter) []float32 { return m.values[p.Index] },
		Save: func(s *State) {
			for i, p := range m.of {
				s.Put(p.Path, p.Shape, m.values[i])
			}
		},
		Restore: func(s *State) error {
			for i, p := range m.of {
				if err := s.Load(p.Path, p.Shape, m.values[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// moved takes the values towards the weights, in blocks that leave the caches last.
func (m *moving) moved(p *Parameter, w []float32, from int, scratch []float32) {
	average := m.values[p.Index][from : from+len(w)]
	k := kernel.Float32()
	for at := 0; at < len(w); at += len(scratch) {
		to := min(at+len(scratch), len(w))
		a, way := average[at:to], scratch[:to-at]
		k.Sub(way, w[at:to], a)
		k.AddScaled(a, a, way, m.pull)
	}
}
