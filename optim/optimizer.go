// Package optim is the vocabulary of optimizers and learning-rate schedules: one file per optimizer, with its formula, its
// source and its defaults. A new one is one new file with one call of Registry.Register.
package optim

import "tessera/part"

// Optimizer moves parameters to where the objective is lower. Every optimizer is exactly one of [Rule] and [Search].
type Optimizer interface {
	// States is how many values of state the optimizer keeps per element, all starting at 0.
	States() int
}

// Registry holds every optimizer.
var Registry = part.New[Optimizer]("optimizer")

// Rule moves parameters against the gradients of one batch after the other. It is a rule on one element of a parameter,
// its gradient and its state; it sees any contiguous slice of a parameter, so that the passes over parameters can be split
// over threads and fused with the projections that follow.
type Rule interface {
	Optimizer
	// LearningRate is the base rate; a schedule multiplies it.
	LearningRate() float64
	// Update moves w in place. w, g and each state[i] are equally long slices of one parameter, of its gradient and of
	// its state; lr is the learning rate of this step and step counts from 1.
	Update(w, g []float32, state [][]float32, lr float64, step int)
}

// Search moves all parameters together: it evaluates the full-batch objective at as many points as it needs and
// finds its step length by a line search.
type Search interface {
	Optimizer
	// Begin returns a search for the minimum of f from w: all parameters, one after the other. state[i], as long as w
	// each, and held are all that the search knows, and are kept up to date. A search that begins with the state of another
	// one continues it, to the same bits.
	Begin(f Objective, w []float32, state [][]float32, held *Held) Descent
}

// Objective is a function of all weights.
type Objective struct {
	// Evaluate returns the value at w and sets g to the gradient there. An error ends the iteration.
	Evaluate func(w, g []float32) (float64, error)
	// Project moves w to the nearest feasible point; nil where every point is feasible.
	Project func(w []float32)
}

// Held is what a search knows beside its vectors.
type Held struct {
	Points int     `json:"points"` // that its state holds
	Value  float64 `json:"value"`  // of the objective, at the last of them
}

// Descent is a search on its way.
type Descent interface {
	// Next moves w to a point where the objective is lower. It returns [ErrMinimum] where no lower point is found,
	// [ErrNotFinite] where the objective or its gradient is not finite at w itself, and what Evaluate returns; after an
	// error w, the state and what is held are as before, or know the value at w at most.
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
