package laws

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/optim"
)

func monotone(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.3, 2)} {
		v := newValley(searchDim, true)
		s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: project}, uniform[float32](searchDim, 0, 1))
		g := make([]float32, searchDim)
		before, _ := v.evaluate(s.w, g)
		for i := range 100 {
			if err := s.Next(); errors.Is(err, optim.ErrMinimum) {
				break
			} else if err != nil {
				return err
			}
			now, _ := v.evaluate(s.w, g)
			if !(now < before) {
				return fmt.Errorf("iteration %d leads from %g to %g", i+1, before, now)
			}
			if now != s.held.Value {
				return fmt.Errorf("iteration %d leads to %g, and holds %g", i+1, now, s.held.Value)
			}
			before = now
		}
	}
	return nil
}

func findsMinimum(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate}, normal(source(), searchDim, 3))
	n, err := s.toTheEnd(400)
	if err != nil {
		return err
	}
	for i, want := range v.target {
		if d := math.Abs(float64(s.w[i] - want)); !(d < 1e-3) {
			return fmt.Errorf("after %d iterations element %d is %g from its minimum", n, i, d)
		}
	}
	return nil
}

// within projects to a box.
func within(low, high float32) func([]float32) {
	return func(w []float32) {
		for i, v := range w {
			w[i] = min(max(v, low), high)
		}
	}
}

// findsMinimumInABox uses curvatures along the axes: the minimum in the box is the point of the box nearest to the minimum.
func findsMinimumInABox(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	box := within(-0.5, 0.5)
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: box}, make([]float32, searchDim))
	want := slices.Clone(v.target)
	box(want)
	n, err := s.toTheEnd(400)
	if err != nil {
		return err
	}
	for i := range want {
		if !(s.w[i] >= -0.5 && s.w[i] <= 0.5) {
			return fmt.Errorf("element %d is %g, outside the box", i, s.w[i])
		}
		if d := math.Abs(float64(s.w[i] - want[i])); !(d < 1e-3) {
			return fmt.Errorf("after %d iterations element %d is %g from its minimum", n, i, d)
		}
	}
	return nil
}

func searchRests(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	for _, project := range []func([]float32){nil, func([]float32) {}} {
		s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate, Project: project}, v.target)
		for range 3 {
			if err := s.Next(); !errors.Is(err, optim.ErrMinimum) {
				return fmt.Errorf("at the minimum: %v", err)
			}
			if err := differ("at the minimum", s.w, v.target); err != nil {
				return err
			}
		}
	}
	return nil
}
