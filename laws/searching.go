package laws

import (
	"errors"
	"fmt"
	"slices"

	"tessera/optim"
)

// searching is a search in progress with its state.
type searching struct {
	w     []float32
	state [][]float32
	held  optim.Held
	optim.Descent
}

func newSearching(o optim.Search, f optim.Objective, w []float32) *searching {
	s := &searching{w: slices.Clone(w)}
	for range o.States() {
		s.state = append(s.state, make([]float32, len(w)))
	}
	s.Descent = o.Begin(f, s.w, s.state, &s.held)
	return s
}

// continued is another search that starts from this state.
func (s *searching) continued(o optim.Search, f optim.Objective) *searching {
	c := &searching{w: slices.Clone(s.w), held: s.held}
	for _, values := range s.state {
		c.state = append(c.state, slices.Clone(values))
	}
	c.Descent = o.Begin(f, c.w, c.state, &c.held)
	return c
}

func (s *searching) differ(what string, want *searching) error {
	if err := differ(what+": weights", s.w, want.w); err != nil {
		return err
	}
	if s.held != want.held {
		return fmt.Errorf("%s: holds %v, want %v", what, s.held, want.held)
	}
	for i := range s.state {
		if err := differ(fmt.Sprintf("%s: state %d", what, i), s.state[i], want.state[i]); err != nil {
			return err
		}
	}
	return nil
}

// toTheEnd iterates until the search converges, at most n iterations.
func (s *searching) toTheEnd(most int) (iterations int, err error) {
	for ; iterations < most; iterations++ {
		if err := s.Next(); errors.Is(err, optim.ErrMinimum) {
			return iterations, nil
		} else if err != nil {
			return iterations, err
		}
	}
	return iterations, nil
}
