package optim

import "gonum.org/v1/gonum/optimize"

// LBFGS is the limited-memory quasi-Newton method on the full batch. From the point w with gradient g, an iteration searches
// along
//
//	d = -H g
//
// where H approximates the inverse Hessian from the last history differences of points and gradients (two-loop recursion).
// The line search begins with length 1 (after a restart: 1/||g||) and looks for a point that satisfies the strong Wolfe
// conditions
//
//	f(w + a d) <= f(w) + 1e-4 a g'd   and   |g(w + a d)'d| <= 0.9 |g'd|
//
// or, if the allowed evaluations find none, takes the lowest evaluated point. If parameters are constrained, d leads to the
// projection of the first point, P(w - H g) - w, and a <= 1, so the search stays in a convex set. All points are projected
// before they are evaluated; in a convex set this changes them only by rounding. In a set that is not convex, such as the
// spheres of unit_norm, the conditions compare f(P(w + a d)) with slopes along the straight line and are only a heuristic:
// the search is slower and may end before a minimum. In every set, all evaluated points are feasible and every iteration
// lowers the objective.
//
// If the line search finds no lower point, or a step has no positive curvature, the history is dropped and the search
// continues along the gradient. If this finds no lower point either, the search ends.
//
// The direction and the line search (Moré and Thuente) are those of gonum/optimize. gonum hides its history, so the
// optimizer's state also has the last history + 1 points and gradients. A new gonum method that replays them gives the same
// bits. Checkpoints therefore do not change the result.
//
// Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization, 1989; Nocedal and Wright,
// Numerical Optimization, 2nd edition, algorithm 7.5. Both Wolfe factors have the defaults of minFunc, which Hosseini-Asl et
// al. used.
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
