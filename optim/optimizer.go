// Package optim contains the optimizers and the learning-rate schedules. An [Optimizer] is either a [Rule], which
// updates parameters after every mini-batch, or a [Search], which works on the full batch. A [Schedule] scales the
// learning rate. Each is one file with its formula, its source and its defaults. A new optimizer or schedule needs only
// a new file that registers it in [Registry] or [Schedules].
package optim

import (
	"math"

	"tessera/config/part"
)

// Optimizer changes parameters to lower the objective. Every optimizer implements exactly one of [Rule] and [Search].
type Optimizer interface {
	// States returns the number of state values per element. They are all 0 at the beginning.
	States() int
}

// Registry contains every optimizer.
var Registry = part.New[Optimizer]("optimizer")

// Rule updates parameters after every mini-batch. It is an elementwise function of a parameter, its gradient and its state.
// It accepts any contiguous slice of a parameter, so the update can be distributed over threads and fused with the
// projections that follow.
type Rule interface {
	Optimizer
	// LearningRate returns the base learning rate, which the schedule scales.
	LearningRate() float64
	// Update updates w in place. w, g and each state[i] are slices of equal length of one parameter, of its gradient
	// and of its state. lr is the learning rate of this step. step counts from 1.
	Update(w, g []float32, state [][]float32, lr float64, step int)
}

// Resting is implemented by rules that leave elements alone whose gradient is 0. Of a table of which a step reads a few rows, such as
// that of a layer embedding, only these rows are then updated.
type Resting interface {
	Rule
	// Rests reports whether, with these settings, a gradient of 0 changes neither an element nor its state.
	Rests() bool
}

// Whole is a [Rule] that updates some parameters as a whole, for example matrices by their singular values. It updates all
// other parameters by Update, element by element.
type Whole interface {
	Rule
	// Takes reports whether the rule updates parameters of the given shape as a whole.
	Takes(shape []int) bool
	// WholeStates returns the lengths of the states of a parameter of the given shape, for example one value per row. They are all 0 at the
	// beginning.
	WholeStates(shape []int) []int
	// UpdateWhole updates w in place. w is a complete parameter of the given shape, row-major. g and each state[i] are
	// its gradient and its state. lr and step are as in Update. It must be safe for concurrent calls for different
	// parameters.
	UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, step int)
}

// Search updates all parameters together. It evaluates the full-batch objective at as many points as it needs and chooses
// the step length by a line search.
type Search interface {
	Optimizer
	// Begin returns a search for a minimum of f. It starts at w, the concatenation of all parameters. The slices
	// state[i], each as long as w, and scalars are the complete state, which the search updates. A search that begins
	// with the state of another search continues it with the same bits.
	Begin(f Objective, w []float32, state [][]float32, scalars *SearchState) Descent
}

// Objective is a function of all parameters.
type Objective struct {
	// Evaluate returns the value at w and sets g to the gradient at w. An error ends the iteration.
	Evaluate func(w, g []float32) (float64, error)
	// Project moves w to the nearest feasible point. It is nil if every point is feasible.
	Project func(w []float32)
}

// SearchState is the scalar state of a search.
type SearchState struct {
	Points int     `json:"points"` // number of points in the state
	Value  float64 `json:"value"`  // objective at the last point
}

// Descent is a search in progress.
type Descent interface {
	// Next moves w to a point with a lower objective. It returns [ErrMinimum] if it finds no lower point,
	// [ErrNotFinite] if the objective or its gradient is not finite at w, and the errors of Evaluate. After an error w
	// and the state are unchanged, except that the state may contain the value at w.
	Next() error
}

// Schedule scales the learning rate over a run.
type Schedule interface {
	// Factor returns the multiplier at the beginning of a step. epoch is the number of completed steps divided by the
	// steps per epoch. epochs is the number of epochs of the run.
	Factor(epoch, epochs float64) float64
}

// Schedules contains every schedule.
var Schedules = part.New[Schedule]("schedule")

// Rate returns the learning rate of a step: the base rate, times the schedule's factor at the beginning of the step,
// times the warm-up factor. The step counts from 1 over the whole run. The run has the given number of epochs, each of
// stepsPerEpoch steps.
//
// The warm-up factor rises linearly, step/(warmupEpochs*stepsPerEpoch), and reaches 1 at the last step of the warm-up.
// It does not start at 0, which would waste a step. 0 epochs disable the warm-up. The schedule starts at the first
// step, together with the warm-up.
func Rate(base float64, s Schedule, warmupEpochs float64, step, stepsPerEpoch, epochs int) float64 {
	rate := base * s.Factor(float64(step-1)/float64(stepsPerEpoch), float64(epochs))
	if steps := warmupEpochs * float64(stepsPerEpoch); float64(step) < steps {
		rate *= float64(step) / steps
	}
	return rate
}

// NormBlock is the number of gradient elements per block of [Norm].
const NormBlock = 4096

// Norm returns the global norm of the gradients: the Euclidean norm of their concatenation, computed in float64, where
// the square of a float32 does not overflow. The order of the additions is fixed: the [SquareSum] of each block of
// NormBlock elements of each gradient, one after the other. A team that computes the blocks in parallel and adds them
// in this order gets the same bits.
func Norm(gradients ...[]float32) float64 {
	total := 0.0
	for _, g := range gradients {
		for ; len(g) > NormBlock; g = g[NormBlock:] {
			total += SquareSum(g[:NormBlock])
		}
		total += SquareSum(g)
	}
	return math.Sqrt(total)
}

// SquareSum returns the sum of squares in float64. The order of the additions depends only on the length.
func SquareSum(g []float32) float64 {
	var s [4]float64 // four partial sums, so that an addition need not wait for the previous one
	for ; len(g) >= 4; g = g[4:] {
		a, b, c, d := float64(g[0]), float64(g[1]), float64(g[2]), float64(g[3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for _, v := range g {
		s[0] += float64(v) * float64(v)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// ClipFactor returns the factor by which all gradients are multiplied to limit their global norm, min(1, limit/(norm +
// 1e-6)), as in PyTorch's clip_grad_norm_. A limit of 0 disables clipping. If norm is NaN, the factor is NaN, because
// clipping must not hide a diverged step.
func ClipFactor(norm, limit float64) float64 {
	if limit == 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}
