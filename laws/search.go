package laws

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/optim"
)

// Search contains the laws of full-batch optimizers.
var Search = Laws[optim.Search]{
	{"gives the same bits twice", searchRepeatable},
	{"resumes from its state to the same bits, at every iteration", searchResumes},
	{"never goes up", monotone},
	{"finds the minimum of a quadratic", findsMinimum},
	{"finds the minimum of a quadratic in a box", findsMinimumInABox},
	{"stays where the gradient is zero", searchRests},
	{"comes back from where the objective is not finite", comesBack},
	{"says when the objective is not finite where it begins", saysNotFinite},
	{"has moved nothing after an error", unmovedByErrors},
	{"uses all of its state and no more", searchState},
}

const searchDim = 40

func searchRepeatable(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	o := fresh()
	a := newSearching(o, optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	again := newSearching(o, optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	other := newSearching(fresh(), optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
	for i := range 40 {
		want := a.Next()
		for _, s := range []*searching{again, other} {
			if err := s.Next(); !errors.Is(err, want) {
				return fmt.Errorf("iteration %d: %v, want %v", i+1, err, want)
			}
			if err := s.differ(fmt.Sprintf("iteration %d", i+1), a); err != nil {
				return err
			}
		}
	}
	return nil
}

func searchResumes(fresh func() optim.Search) error {
	for _, project := range []func([]float32){nil, within(-0.5, 0.5)} {
		f := optim.Objective{Evaluate: newValley(searchDim, true).evaluate, Project: project}
		start := normal(source(), searchDim, 0.2)
		s := newSearching(fresh(), f, start)
		resumed := newSearching(fresh(), f, start)
		for i := range 60 {
			resumed = resumed.continued(fresh(), f)
			want := s.Next()
			if err := resumed.Next(); !errors.Is(err, want) {
				return fmt.Errorf("iteration %d: %v, want %v", i+1, err, want)
			}
			if err := resumed.differ(fmt.Sprintf("iteration %d", i+1), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// comesBack starts near the minimum and near the boundary of the finite region: the first step ends beyond the boundary.
func comesBack(fresh func() optim.Search) error {
	v := newValley(searchDim, false)
	v.edge = 0.03
	start := slices.Clone(v.target)
	for i := range start {
		start[i] -= 0.1
	}
	s := newSearching(fresh(), optim.Objective{Evaluate: v.evaluate}, start)
	if _, err := s.toTheEnd(200); err != nil {
		return err
	}
	g := make([]float32, searchDim)
	before, _ := v.evaluate(start, g)
	if now, _ := v.evaluate(s.w, g); !(now < 1e-3*before) {
		return fmt.Errorf("from %g to %g only", before, now)
	}
	return nil
}

func saysNotFinite(fresh func() optim.Search) error {
	for name, evaluate := range map[string]func(w, g []float32) (float64, error){
		"a value of NaN":      func(w, g []float32) (float64, error) { return math.NaN(), nil },
		"an infinite value":   func(w, g []float32) (float64, error) { return math.Inf(-1), nil },
		"a gradient of NaN":   func(w, g []float32) (float64, error) { g[1] = float32(math.NaN()); return 1, nil },
		"an infinite element": func(w, g []float32) (float64, error) { g[0] = float32(math.Inf(1)); return 1, nil },
	} {
		s := newSearching(fresh(), optim.Objective{Evaluate: evaluate}, make([]float32, 2))
		if err := s.Next(); !errors.Is(err, optim.ErrNotFinite) {
			return fmt.Errorf("%s: %v", name, err)
		}
	}
	return nil
}

// unmovedByErrors lets each evaluation fail in turn; a restarted search must give the same result as a search without
// failures.
func unmovedByErrors(fresh func() optim.Search) error {
	start := normal(source(), searchDim, 3)
	for fail := 1; fail <= 25; fail++ {
		v := newValley(searchDim, true)
		v.fail = fail
		f := optim.Objective{Evaluate: v.evaluate}
		s := newSearching(fresh(), f, start)
		want := newSearching(fresh(), optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, start)
		iterations, failed := 0, false
		for ; iterations < 30 && !failed; iterations++ {
			before := slices.Clone(s.w)
			err := s.Next()
			switch {
			case errors.Is(err, errLook):
				if failed = true; !slices.Equal(before, s.w) {
					return fmt.Errorf("evaluation %d fails, and the weights have changed", fail)
				}
				iterations--
			case err != nil:
				return err
			}
		}
		if !failed {
			return fmt.Errorf("%d iterations make fewer than %d evaluations", iterations, fail)
		}
		resumed := s.continued(fresh(), f)
		for range iterations + 5 {
			if err := want.Next(); err != nil {
				return err
			}
		}
		for _, t := range []*searching{s, resumed} {
			for range 5 {
				if err := t.Next(); err != nil {
					return err
				}
			}
			if err := t.differ(fmt.Sprintf("evaluation %d failed", fail), want); err != nil {
				return err
			}
		}
	}
	return nil
}

// searchState fills the state and checks for unused vectors and for writes beyond their ends.
func searchState(fresh func() optim.Search) error {
	const guard, mark = 8, -77
	o := fresh()
	var padded, state [][]float32
	for range o.States() {
		p := slices.Repeat([]float32{mark}, searchDim+guard)
		clear(p[:searchDim])
		padded, state = append(padded, p), append(state, p[:searchDim:searchDim])
	}
	var held optim.Held
	w := normal(source(), searchDim, 3)
	d := o.Begin(optim.Objective{Evaluate: newValley(searchDim, true).evaluate}, w, state, &held)
	for range o.States() {
		if err := d.Next(); errors.Is(err, optim.ErrMinimum) {
			break
		} else if err != nil {
			return err
		}
	}
	for i, p := range padded {
		if !slices.ContainsFunc(p[:searchDim], func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("state %d of %d is empty after as many iterations", i, o.States())
		}
		if slices.ContainsFunc(p[searchDim:], func(v float32) bool { return v != mark }) {
			return fmt.Errorf("state %d: writes beyond its end", i)
		}
	}
	return nil
}
