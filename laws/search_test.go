package laws_test

import (
	"errors"
	"math"
	"testing"

	"tessera/laws"
	"tessera/optim"
)

// wrongSearch is L-BFGS with one fault.
type wrongSearch struct {
	optim.LBFGS
	more  int                            // number of additional states
	begin func(s *sabotage)              // may be nil
	next  func(s *sabotage, n int) error // fault of the n-th iteration; nil for none
}

// sabotage contains the state that a fault can change.
type sabotage struct {
	f     optim.Objective
	w     []float32
	held  *optim.SearchState
	right optim.Descent
	wrong *wrongSearch
	n     int
}

func (o *wrongSearch) States() int { return o.LBFGS.States() + o.more }

func (o *wrongSearch) Begin(f optim.Objective, w []float32, state [][]float32, held *optim.SearchState) optim.Descent {
	s := &sabotage{f: f, w: w, held: held, wrong: o}
	if o.begin != nil {
		o.begin(s)
	}
	s.right = o.LBFGS.Begin(s.f, w, state, held)
	return s
}

func (s *sabotage) Next() error {
	s.n++
	if s.wrong.next != nil {
		return s.wrong.next(s, s.n)
	}
	return s.right.Next()
}

// searchMistakes maps a law to a search that breaks it.
func searchMistakes() map[string]func() optim.Search {
	calls := 0
	with := func(begin func(*sabotage), next func(*sabotage, int) error) func() optim.Search {
		return func() optim.Search {
			return &wrongSearch{LBFGS: optim.LBFGS{History: 5, Evaluations: 25}, begin: begin, next: next}
		}
	}
	values := func(change func(value float64) (float64, error)) func() optim.Search {
		return with(func(s *sabotage) {
			right := s.f.Evaluate
			s.f.Evaluate = func(w, g []float32) (float64, error) {
				v, err := right(w, g)
				if err != nil {
					return v, err
				}
				return change(v)
			}
		}, nil)
	}
	return map[string]func() optim.Search{
		"gives the same bits twice": with(nil, func(s *sabotage, _ int) error {
			calls++
			err := s.right.Next()
			s.w[0] += float32(calls) * 1e-3
			return err
		}),
		"resumes from its state to the same bits, at every iteration": with(func(s *sabotage) { *s.held = optim.SearchState{} }, nil),
		"never goes up": with(nil, func(s *sabotage, n int) error {
			err := s.right.Next()
			s.w[1] += float32(n)
			return err
		}),
		"finds the minimum of a quadratic": with(nil, func(s *sabotage, n int) error {
			if n > 3 {
				return optim.ErrMinimum
			}
			return s.right.Next()
		}),
		"finds the minimum of a quadratic in a box": with(func(s *sabotage) { s.f.Project = nil }, nil),
		"stays where the gradient is zero": with(nil, func(s *sabotage, _ int) error {
			s.w[0]++
			return s.right.Next()
		}),
		"returns from points where the objective is not finite": values(func(v float64) (float64, error) {
			if math.IsNaN(v) {
				return v, errors.New("not a number")
			}
			return v, nil
		}),
		"reports an objective that is not finite at the start": values(func(v float64) (float64, error) {
			if v-v != 0 {
				v = 0
			}
			return v, nil
		}),
		"changes no weight if an evaluation fails": with(nil, func(s *sabotage, _ int) error {
			err := s.right.Next()
			if err != nil {
				s.w[0]++
			}
			return err
		}),
		"uses all of its state and no more": func() optim.Search {
			return &wrongSearch{LBFGS: optim.LBFGS{History: 5, Evaluations: 25}, more: 1}
		},
	}
}

// Every law must fail for some incorrect search; otherwise the law proves nothing.
func TestWrongSearchesBreakTheirLaw(t *testing.T) {
	mustBreak(t, laws.Search, searchMistakes())
}

func TestTheRightSearchBreaksNoLaw(t *testing.T) {
	right := func() optim.Search { return &wrongSearch{LBFGS: optim.LBFGS{History: 5, Evaluations: 25}} }
	if got := laws.Broken(laws.Search, right); len(got) > 0 {
		t.Errorf("L-BFGS breaks %q", got)
	}
}

// both is a part that is a rule and a search.
type both struct {
	wrongRule
	optim.LBFGS
}

func (both) States() int { return 0 }

func TestAnOptimizerIsOfOneSort(t *testing.T) {
	for name, fresh := range map[string]func() optim.Optimizer{
		"both":    func() optim.Optimizer { return &both{} },
		"neither": func() optim.Optimizer { return neither{} },
	} {
		if len(laws.Broken(laws.Optimizer, fresh)) == 0 {
			t.Errorf("%s is taken", name)
		}
	}
}

type neither struct{}

func (neither) States() int { return 0 }
