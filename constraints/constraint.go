// Package constraints contains the constraints of parameters. A [Constraint] projects a parameter onto a feasible set,
// once before the first step and after every optimizer step. Each constraint is one file, which states its argmin
// problem.
//
// A new constraint needs only a new file with one call of Registry.Register. The law tests (feasible, idempotent,
// nearest point) include it automatically.
//
// Several constraints on one parameter are applied in the order of their declaration. For a constraint on rows, the
// rows are:
//
//   - in a parameter of two axes, its rows: in a dense weight (inputs, units) all weights of one input, which in a decoder are
//     an atom;
//   - in a parameter of three or more axes, one row for each index of the last axis: in a conv2d weight (kernel, kernel_width,
//     channels, filters) all weights of one filter, in a conv2d_transpose weight (kernel, kernel_width, filters, channels) all
//     weights of one input channel, in the position embedding of images one channel at all positions;
//   - in a parameter of fewer axes, the parameter itself, as a single row.
//
// Project receives a parameter of three or more axes as the matrix of these rows.
//
// NaN stays NaN, because a diverged weight must stop the run.
package constraints

import (
	"iter"
	"math"

	"tessera/config/part"
)

// Constraint projects a parameter onto a feasible set.
type Constraint interface {
	// Project replaces w, a row-major array of the given shape, by the nearest point of the feasible set. It is
	// idempotent to the bit. Training passes at most two axes, as the package comment describes, except to a
	// [Pointwise] constraint, which receives the original shape.
	Project(w []float32, shape []int)
	// Violation returns by how much w violates the constraint: the largest amount by which a weight or a row exceeds
	// its bound. It is 0 in the feasible set, and NaN if w contains NaN. After Project it is at most the rounding of
	// the bound in float32.
	Violation(w []float32, shape []int) float64
}

// Pointwise is implemented by constraints whose Project treats every element separately and ignores the shape. Any part of a
// parameter can then be projected alone: the engine fuses the projection with the optimizer's update.
type Pointwise interface {
	Constraint
	// Pointwise marks the constraint. It is never called.
	Pointwise()
}

// RowWise is implemented by constraints whose Project treats every row separately and is safe for concurrent use. Several threads then
// project the rows of a parameter.
type RowWise interface {
	Constraint
	// RowWise marks the constraint. It is never called.
	RowWise()
}

// Registry contains every constraint.
var Registry = part.New[Constraint]("constraint")

// rounding is the relative rounding of float32. A row whose norm is within this factor of its bound is not changed.
// Scaling it again would change its last bits, so that projecting twice would differ from projecting once.
const rounding = 1.0 / (1 << 23)

// rows yields the rows of w, the slices of its first axis. A parameter of fewer than two axes is one row.
func rows(w []float32, shape []int) iter.Seq[[]float32] {
	return func(yield func([]float32) bool) {
		size := len(w)
		if len(shape) > 1 && shape[0] > 0 {
			size /= shape[0]
		}
		for ; len(w) > 0 && size > 0; w = w[size:] {
			if !yield(w[:size]) {
				return
			}
		}
	}
}

// worstRow returns the largest violation of any row.
func worstRow(w []float32, shape []int, violation func(row []float32) float64) float64 {
	largest := 0.0
	for row := range rows(w, shape) {
		largest = max(largest, violation(row))
	}
	return largest
}

// length returns the Euclidean norm of a row. It computes in float64, where the square of a float32 neither overflows
// nor becomes 0.
func length(row []float32) float64 {
	var s [4]float64 // four independent sums, so that an addition need not wait for the previous one
	i := 0
	for ; i+4 <= len(row); i += 4 {
		a, b, c, d := float64(row[i]), float64(row[i+1]), float64(row[i+2]), float64(row[i+3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for ; i < len(row); i++ {
		s[0] += float64(row[i]) * float64(row[i])
	}
	return math.Sqrt((s[0] + s[1]) + (s[2] + s[3]))
}

// rescale multiplies a row by factor. The product is rounded once, so a row of denormals keeps its direction.
func rescale(row []float32, factor float64) {
	for i, v := range row {
		row[i] = float32(float64(v) * factor)
	}
}
