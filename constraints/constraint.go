// Package constraints is the vocabulary of projections: one file per feasible set, each stating its argmin problem.
//
// A constraint is w -> w', applied once before the first step and after every optimizer step. A new one is one new file with
// one call of Registry.Register; the law tests (feasible, idempotent, nearest point) include it automatically.
//
// Several constraints on one parameter are projected in the order of their declaration. A set that bounds rows applies to:
//
//   - the rows of a parameter of two axes: of a dense weight (inputs, units) all weights of one input, in a decoder an atom;
//   - the indices of the last axis of a parameter of three or more axes: of a conv2d weight (kernel, kernel_width, channels,
//     filters) all weights of one filter, of a conv2d_transpose weight (kernel, kernel_width, filters, channels) what one
//     channel of the input draws, of the position embedding of images one channel at all positions;
//   - a parameter of fewer axes as one row.
//
// Project gets a parameter of three or more axes as the matrix whose rows these are.
//
// NaN stays NaN: a diverged weight must stop the run, not be projected away.
package constraints

import "tessera/part"

// Constraint projects a parameter onto a feasible set.
type Constraint interface {
	// Project replaces w, of that shape, row-major, by the nearest point of the feasible set. It is idempotent to the bit.
	// Training calls it with at most two axes, see the package; a [Pointwise] one gets the shape as it is.
	Project(w []float32, shape []int)
	// Violation is the distance of w from the feasible set: the largest amount by which a weight or a row breaks its bound,
	// 0 in the set, and NaN when w holds a NaN. After Project it is at most float32's rounding of the bound.
	Violation(w []float32, shape []int) float64
}

// Pointwise is implemented by constraints whose Project treats every element separately. Any part of a parameter can then be
// projected alone (shape is ignored): the engine fuses these with the optimizer's pass.
type Pointwise interface {
	Constraint
	Pointwise()
}

// Registry holds every constraint.
var Registry = part.New[Constraint]("constraint")
