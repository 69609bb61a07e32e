// Package optim is the vocabulary of optimizers and learning-rate schedules: one file per rule, with its formula, its
// source and its defaults.
//
// An optimizer is a rule on one element of a parameter, its gradient and a fixed number of state values; it sees any
// contiguous part of a parameter, so that the passes over parameters can be split over threads and fused with the
// projections that follow. A new one is one new file with one call of Registry.Register.
package optim

import "tessera/internal/registry"

// Optimizer moves parameters against their gradients.
type Optimizer interface {
	// LearningRate is the base rate; a schedule multiplies it.
	LearningRate() float64
	// States is how many values of state the rule keeps per element, all starting at 0.
	States() int
	// Update moves w in place. w, g and each state[i] are equally long parts of one parameter, of its gradient and of
	// its state; lr is the learning rate of this step and step counts from 1.
	Update(w, g []float32, state [][]float32, lr float64, step int)
}

// Registry holds every optimizer.
var Registry = registry.New[Optimizer]("optimizer")

// Schedule scales the learning rate over a run.
type Schedule interface {
	// Factor returns the multiplier at the beginning of a step; epoch may be fractional: steps done / steps per
	// epoch. epochs is the length of the run.
	Factor(epoch, epochs float64) float64
}

// Schedules holds every schedule.
var Schedules = registry.New[Schedule]("schedule")
