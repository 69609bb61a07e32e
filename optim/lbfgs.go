package optim

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

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
// or, if it finds none within the allowed evaluations, takes the lowest evaluated point. If parameters are constrained, d
// leads to the projection of the first point, P(w - H g) - w, and a <= 1, so the search stays in a convex set. All points are
// projected before they are evaluated; in a convex set this changes them only by rounding. In a set that is not convex, such
// as the spheres of unit_norm, the conditions compare f(P(w + a d)) with slopes along the straight line and are only a
// heuristic: the search is slower and may end before a minimum. In every set, all evaluated points are feasible and every
// iteration lowers the objective.
//
// If the line search finds no lower point, or a step has no positive curvature, the history is dropped and the search
// continues along the gradient. If this finds no lower point either, the search ends.
//
// The direction and the line search (Moré and Thuente) are those of gonum/optimize. gonum does not expose its history, so the
// optimizer's state contains the last history + 1 points and gradients. After a resume they are replayed into a new gonum
// method, which gives the same bits. Checkpoints therefore do not change the result.
//
// Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization, 1989; Nocedal and Wright,
// Numerical Optimization, 2nd edition, algorithm 7.5. Both Wolfe constants are the defaults of minFunc, which Hosseini-Asl et
// al. used.
type LBFGS struct {
	History     int `toml:"history" want:"in [1,1000]" doc:"number of past iterations in the history; each keeps two values per parameter"`
	Evaluations int `toml:"evaluations" want:"> 0" doc:"maximum evaluations of the full-batch objective per iteration; typically 1 or 2"`
}

func init() {
	Registry.Register("lbfgs", "full-batch quasi-Newton steps: w <- w - a H g, H from past steps",
		func() Optimizer { return &LBFGS{History: 15, Evaluations: 25} })
}

// States implements [Optimizer]. The states are history + 1 points, each followed by its gradient, with the oldest
// first.
func (l *LBFGS) States() int { return 2 * (l.History + 1) }

func (l *LBFGS) Begin(f Objective, w []float32, state [][]float32, scalars *SearchState) Descent {
	n := len(w)
	d := &descent{settings: *l, objective: f, w: w, state: state, scalars: scalars, direction: make([]float64, n),
		here:  optimize.Location{X: make([]float64, n), Gradient: make([]float64, n)},
		trial: newPoint(n), lowest: newPoint(n)}
	return d
}

// ErrMinimum means that the line search found no lower point: up to rounding, the search is at a minimum.
var ErrMinimum = errors.New("the line search found no lower point")

// ErrNotFinite means that the objective or its gradient is NaN or infinite at the current point.
var ErrNotFinite = errors.New("the objective is not finite")

// point is an evaluated point: the parameters, and the gradient and value of the objective.
type point struct {
	w, g  []float32
	value float64
}

func newPoint(n int) *point { return &point{w: make([]float32, n), g: make([]float32, n)} }

// descent implements [Descent] for [LBFGS]. Points and gradients are rounded to float32 before they are stored in the
// state and passed to gonum. Otherwise a resumed search could not replay the same values.
type descent struct {
	settings  LBFGS
	objective Objective
	w         []float32
	state     [][]float32
	scalars   *SearchState

	method    *optimize.LBFGS   // computes the directions
	replayed  int               // number of points of the state already passed to method
	here      optimize.Location // last point
	direction []float64

	trial, lowest *point // points of the current line search
}

func (d *descent) Next() error {
	if d.scalars.Points == 0 {
		if err := d.first(); err != nil {
			return err
		}
	}
	for {
		found, err := d.search(d.step())
		if err != nil {
			d.replayed = 0 // gonum overwrites the direction, so it must be computed again
			return err
		}
		if found != nil {
			d.accept(found)
			return nil
		}
		if d.scalars.Points == 1 {
			d.replayed = 0
			return ErrMinimum
		}
		d.forget()
	}
}

// first evaluates the starting point of the search.
func (d *descent) first() error {
	copy(d.trial.w, d.w)
	if err := d.look(d.trial); err != nil {
		return err
	}
	if math.IsInf(d.trial.value, 0) {
		return ErrNotFinite
	}
	d.hold(d.trial)
	return nil
}

// look evaluates the objective at a point. If the value or the gradient is not finite, it sets the value of the point
// to infinity.
func (d *descent) look(p *point) (err error) {
	if p.value, err = d.objective.Evaluate(p.w, p.g); err != nil {
		return err
	}
	sum := p.value
	for _, v := range p.g {
		sum += float64(v)
	}
	if sum-sum != 0 { // the sum is NaN or infinite
		p.value = math.Inf(1)
	}
	return nil
}

// step passes the new points of the state to gonum and computes the direction at the last point. It returns the length
// of the first step.
func (d *descent) step() (length float64) {
	if d.replayed == 0 {
		d.method = &optimize.LBFGS{Store: d.settings.History}
	}
	for ; d.replayed < d.scalars.Points; d.replayed++ {
		widen(d.here.X, d.state[2*d.replayed])
		widen(d.here.Gradient, d.state[2*d.replayed+1])
		if d.replayed == 0 {
			length = d.method.InitDirection(&d.here, d.direction)
		} else {
			length = d.method.NextDirection(&d.here, d.direction)
		}
	}
	d.here.F = d.scalars.Value
	return length
}

// feasible replaces the direction by the vector from the last point to the projected end point of the step. It returns the
// new step length, 1.
func (d *descent) feasible(length float64) float64 {
	for i, v := range d.direction {
		d.trial.w[i] = float32(d.here.X[i] + length*v)
	}
	d.objective.Project(d.trial.w)
	for i, v := range d.trial.w {
		d.direction[i] = float64(v) - d.here.X[i]
	}
	return 1
}

// search runs a line search along the direction, starting with the given step length. It returns nil if it finds no lower
// point.
func (d *descent) search(length float64) (found *point, err error) {
	if floats.Norm(d.here.Gradient, math.Inf(1)) == 0 {
		return nil, nil
	}
	longest := 0.0 // 0 means no limit in gonum
	if d.objective.Project != nil {
		length = d.feasible(length)
		longest = length
	}
	d.lowest.value = d.scalars.Value
	for left := d.settings.Evaluations; left > 0; {
		var again bool
		if left, again, err = d.line(length, longest, left); err != nil {
			return nil, err
		} else if !again {
			break
		}
		length /= 10 // the end point was not finite: search again closer, with this end point as the limit
		longest = length
	}
	if d.lowest.value < d.scalars.Value {
		return d.lowest, nil
	}
	return nil, nil
}

// line runs one line search. The limit most is the maximum number of evaluations. It stores in lowest the point where
// the search ends or, if that fails, the lowest evaluated point. It returns the number of remaining evaluations. again
// is true if the search met a non-finite point before any lower point.
func (d *descent) line(length, longest float64, most int) (left int, again bool, err error) {
	line := &optimize.LinesearchMethod{
		Linesearcher:    &optimize.MoreThuente{DecreaseFactor: 1e-4, CurvatureFactor: 0.9, MaximumStep: longest},
		NextDirectioner: given{d.direction, length},
	}
	at := optimize.Location{X: append([]float64(nil), d.here.X...), Gradient: append([]float64(nil), d.here.Gradient...), F: d.here.F}
	op, stuck := line.Init(&at)
	for left = most; left > 0 && stuck == nil && op != optimize.MajorIteration; left-- {
		narrow(d.trial.w, at.X)
		if d.objective.Project != nil {
			d.objective.Project(d.trial.w)
		}
		if err := d.look(d.trial); err != nil {
			return left, false, err
		}
		if math.IsInf(d.trial.value, 0) {
			return left - 1, !(d.lowest.value < d.scalars.Value), nil
		}
		at.F = d.trial.value
		widen(at.Gradient, d.trial.g)
		op, stuck = line.Iterate(&at)
		if done := stuck == nil && op == optimize.MajorIteration; d.trial.value < d.lowest.value || done && d.trial.value < d.scalars.Value {
			d.trial, d.lowest = d.lowest, d.trial
		}
	}
	return left, false, nil
}

// given is a search direction and first step length that are fixed in advance.
type given struct {
	direction []float64
	length    float64
}

func (g given) InitDirection(_ *optimize.Location, direction []float64) float64 {
	copy(direction, g.direction)
	return g.length
}

func (g given) NextDirection(at *optimize.Location, direction []float64) float64 {
	return g.InitDirection(at, direction)
}

// accept moves the search to p. It drops the history if the step does not have positive curvature, because gonum
// divides by the curvature.
func (d *descent) accept(p *point) {
	growth, step, change := 0.0, 0.0, 0.0
	for i := range p.w {
		s, y := float64(p.w[i])-d.here.X[i], float64(p.g[i])-d.here.Gradient[i]
		growth, step, change = growth+s*y, step+s*s, change+y*y
	}
	copy(d.w, p.w)
	d.hold(p)
	if !(growth > 1e-10*math.Sqrt(step*change)) {
		d.forget()
	}
}

// hold appends a point to the state and drops the oldest one if the state is full.
func (d *descent) hold(p *point) {
	if last := d.settings.History; d.scalars.Points > last {
		for i := range 2 * last {
			copy(d.state[i], d.state[i+2])
		}
		d.scalars.Points--
		d.replayed--
	}
	copy(d.state[2*d.scalars.Points], p.w)
	copy(d.state[2*d.scalars.Points+1], p.g)
	d.scalars.Points++
	d.scalars.Value = p.value
}

// forget drops all points of the history except the last.
func (d *descent) forget() {
	last := d.scalars.Points - 1
	copy(d.state[0], d.state[2*last])
	copy(d.state[1], d.state[2*last+1])
	for _, values := range d.state[2 : 2*last+2] {
		clear(values)
	}
	d.scalars.Points, d.replayed = 1, 0
}

func widen(dst []float64, src []float32) {
	for i, v := range src {
		dst[i] = float64(v)
	}
}

func narrow(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}
