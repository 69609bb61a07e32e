package baselines

import (
	"fmt"
	"math"
)

// fitting is the progress of an iterative fit.
type fitting struct {
	iteration int
	objective float64
	done      bool
	rises     bool // the objective may rise, which does not end the fit
}

// Done implements [Model].
func (f *fitting) Done() bool { return f.done }

// advance counts an iteration with that objective and decides whether it was the last one.
func (f *fitting) advance(objective float64, iterations int, tolerance float64) (Progress, error) {
	if !finite(objective) {
		return Progress{}, fmt.Errorf("iteration %d: %w", f.iteration+1, ErrDiverged)
	}
	before := f.objective
	f.iteration++
	f.objective = objective
	fallen := before - objective
	if f.rises {
		fallen = math.Abs(fallen)
	}
	f.done = f.iteration >= iterations || fallen <= tolerance*before
	return Progress{f.iteration, f.objective, f.done}, nil
}

func (f *fitting) save() map[string]float64 {
	done := 0.0
	if f.done {
		done = 1
	}
	return map[string]float64{"iteration": float64(f.iteration), "objective": f.objective, "done": done}
}

func (f *fitting) restore(s State) error {
	iteration, err := s.number("iteration")
	if err != nil {
		return err
	}
	objective, err := s.number("objective")
	if err != nil {
		return err
	}
	done, err := s.number("done")
	f.iteration, f.objective, f.done = int(iteration), objective, done != 0
	return err
}
