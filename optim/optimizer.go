// Package optim is the vocabulary of optimizers and learning-rate schedules: one file per optimizer, with its formula, its
// source and its defaults. A new one is one new file with one call of Registry.Register.
package optim

import "tessera/part"

// Optimizer changes parameters to lower the objective. Every optimizer is exactly one of [Rule] and [Search].
type Optimizer interface {
	// States is the number of state values per element, all 0 at the beginning.
	States() int
}

// Registry holds every optimizer.
var Registry = part.New[Optimizer]("optimizer")

// Rule updates parameters after every mini-batch. It is an element-wise function of a parameter, its gradient and its state.
// It is called with any contiguous slice of a parameter, so the passes over parameters can be split over threads and fused
// with the projections that follow.
type Rule interface {
	Optimizer
	// LearningRate is the base learning rate, which the schedule scales.
	LearningRate() float64
	// Update moves w in place. w, g and each state[i] are equally long slices of one parameter, of its gradient and of
	// its state; lr is the learning rate of this step and step counts from 1.
	Update(w, g []float32, state [][]float32, lr float64, step int)
}

// Search updates all parameters together. It evaluates the full-batch objective at as many points as it needs and chooses
// the step length by a line search.
type Search interface {
	Optimizer
	// Begin returns a search for the minimum of f from w, the concatenation of all parameters. The slices state[i], each as
	// long as w, and held are the complete state of the search, which updates them. A search that begins with the state of
	// another one continues it with the same bits.
	Begin(f Objective, w []float32, state [][]float32, held *Held) Descent
}

// Objective is a function of all weights.
type Objective struct {
	// Evaluate returns the value at w and sets g to the gradient there. An error ends the iteration.
	Evaluate func(w, g []float32) (float64, error)
	// Project moves w to the nearest feasible point; nil if every point is feasible.
	Project func(w []float32)
}

// Held is the scalar state of a search.
type Held struct {
	Points int     `json:"points"` // that its state holds
	Value  float64 `json:"value"`  // of the objective, at the last of them
}

// Descent is a search in progress.
type Descent interface {
	// Next moves w to a point with a lower objective. Errors: [ErrMinimum] if it finds no lower point, [ErrNotFinite] if the
	// objective or its gradient is not finite at w, and the errors of Evaluate. After an error w and the state are
	// unchanged, except that they may contain the value at w.
	Next() error
}

// Schedule scales the learning rate over a run.
type Schedule interface {
	// Factor returns the multiplier at the beginning of a step; epoch may be fractional: steps done / steps per
	// epoch. epochs is the length of the run.
	Factor(epoch, epochs float64) float64
}

// Schedules holds every schedule.
var Schedules = part.New[Schedule]("schedule")
