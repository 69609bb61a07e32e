package optim

import "gonum.org/v1/gonum/optimize"

// LBFGS is the limited-memory quasi-Newton method on all images at once. From the point w with gradient g an iteration
// searches along
//
//	d = -H g
//
// where H is the inverse Hessian as the last history differences of points and gradients show it (two-loop recursion),
// first with length 1 (after a restart: 1/||g||), for a point that satisfies the strong Wolfe conditions
//
//	f(w + a d) <= f(w) + 1e-4 a g'd   and   |g(w + a d)'d| <= 0.9 |g'd|
//
// or, when evaluations have found none, for the lowest point seen. Where parameters are constrained, d leads to the
// projection of that first point, P(w - H g) - w, and a <= 1, so that a convex set is not left. Points between the ends are
// projected before they are looked at: on a convex set that changes nothing but rounding. On a set that is not convex, as the
// spheres of unit_norm, the conditions then compare f(P(w + a d)) with slopes along the straight line, are a guide only, and the
// search is slower; it may end short of a minimum. On any set all that is looked at is feasible, and every iteration lowers the
// objective.
//
// Where no lower point is found, or a step shows no positive curvature, the history is dropped and the search continues
// along the gradient; where that is not lower either, it ends.
//
// The direction and the line search (Moré and Thuente) are those of gonum/optimize. gonum hides its history, so the last
// history + 1 points and gradients are kept beside it, as the optimizer's state: replayed to a new gonum method they give
// the same bits, so that nothing depends on when a checkpoint is written.
//
// Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization, 1989; Nocedal and Wright,
// Numerical Optimization, 2nd edition, algorithm 7.5. The defaults of both Wolfe factors are those of minFunc, with which
// Hosseini-Asl et al. trained.
type LBFGS struct {
	History     int `toml:"history" want:"in [1,1000]" doc:"number of past iterations in the history; each keeps two values per parameter"`
	Evaluations int `toml:"evaluations" want:"> 0" doc:"maximum evaluations of the full-batch objective per iteration; typically 1 or 2"`
}

func init() {
	Registry.Register("lbfgs", "full-batch quasi-Newton steps: w <- w - a H g, H from past steps",
		func() Optimizer { return &LBFGS{History: 15, Evaluations: 25} })
}

// States implements [Optimizer]: history + 1 points, each followed by its gradient, the oldest first.
func (l *LBFGS) States() int { return 2 * (l.History + 1) }

// Begin implements [Search].
func (l *LBFGS) Begin(f Objective, w []float32, state [][]float32, held *Held) Descent {
	n := len(w)
	d := &descent{settings: *l, objective: f, w: w, state: state, held: held, direction: make([]float64, n),
		here:  optimize.Location{X: make([]float64, n), Gradient: make([]float64, n)},
		trial: newPoint(n), lowest: newPoint(n)}
	return d
}
