package optim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/optim"
)

// leastSquares is the objective |a x - b|² / 2.
type leastSquares struct {
	a    *mat.Dense
	b    *mat.VecDense
	seen [][]float32 // all evaluated points
}

func newLeastSquares(rows, columns int, seed uint64) *leastSquares {
	r := rand.New(rand.NewPCG(seed, 5))
	p := &leastSquares{a: mat.NewDense(rows, columns, nil), b: mat.NewVecDense(rows, nil)}
	for i := range rows {
		for j := range columns {
			p.a.Set(i, j, r.NormFloat64()*float64(1+j)) // columns of very different lengths make the problem ill-conditioned
		}
		p.b.SetVec(i, r.NormFloat64())
	}
	return p
}

func (p *leastSquares) evaluate(w, g []float32) (float64, error) {
	p.seen = append(p.seen, append([]float32(nil), w...))
	x := mat.NewVecDense(len(w), nil)
	for i, v := range w {
		x.SetVec(i, float64(v))
	}
	var residual, slope mat.VecDense
	residual.MulVec(p.a, x)
	residual.SubVec(&residual, p.b)
	slope.MulVec(p.a.T(), &residual)
	for i := range g {
		g[i] = float32(slope.AtVec(i))
	}
	return mat.Dot(&residual, &residual) / 2, nil
}

// searching starts a search of f by o at w = 0.
func searching(o *optim.LBFGS, f optim.Objective, n int) (w []float32, d optim.Descent) {
	w = make([]float32, n)
	state := lists.Of(o.States(), func(int) []float32 { return make([]float32, n) })
	return w, o.Begin(f, w, state, &optim.SearchState{})
}

func TestLBFGSReachesTheSolutionOfTheNormalEquations(t *testing.T) {
	for seed := range uint64(10) {
		const rows, columns = 60, 12
		p := newLeastSquares(rows, columns, seed)
		var normal mat.Dense
		var right, want mat.VecDense
		normal.Mul(p.a.T(), p.a)
		right.MulVec(p.a.T(), p.b)
		fatal.If(t, want.SolveVec(&normal, &right))
		w, d := searching(&optim.LBFGS{History: 8, Evaluations: 25}, optim.Objective{Evaluate: p.evaluate}, columns)
		iterations := 0
		for ; iterations < 200; iterations++ {
			if err := d.Next(); errors.Is(err, optim.ErrMinimum) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range w {
			if got := float64(v); !(math.Abs(got-want.AtVec(i)) <= 1e-5*(1+math.Abs(want.AtVec(i)))) {
				t.Errorf("seed %d: after %d iterations x[%d] is %v, want %v", seed, iterations, i, got, want.AtVec(i))
			}
		}
		if iterations == 200 {
			t.Errorf("seed %d: does not see that it is at the minimum", seed)
		}
	}
}

// The oracle stores H as a matrix. It starts with gamma I and applies the update H <- (I - s y'/y's) H (I - y s'/y's) +
// s s'/y's for each of the last steps. The first point that an iteration evaluates is w - H g.
func TestLBFGSLooksWhereTheInverseHessianPoints(t *testing.T) {
	const n, history = 7, 3
	p := newLeastSquares(30, n, 3)
	w, d := searching(&optim.LBFGS{History: history, Evaluations: 25}, optim.Objective{Evaluate: p.evaluate}, n)
	var points, gradients []*mat.VecDense
	g := make([]float32, n)
	for iteration := range 9 {
		fatal.If(t, expect.Err(p.evaluate(w, g)))
		points, gradients = append(points, vector(w)), append(gradients, vector(g))
		looks := len(p.seen)
		if iteration == 0 {
			looks++ // the evaluation of the starting point
		}
		fatal.If(t, d.Next())
		var step mat.VecDense
		if iteration == 0 {
			step.ScaleVec(1/mat.Norm(gradients[0], 2), gradients[0])
		} else {
			step.MulVec(inverseHessian(points, gradients, history), gradients[iteration])
		}
		for i := range n {
			want := points[iteration].AtVec(i) - step.AtVec(i)
			expect.Near(t, float64(p.seen[looks][i]), want, 1e-6*(1+math.Abs(want)), "iteration", iteration+1, "looks at", i)
		}
	}
}

func vector(v []float32) *mat.VecDense {
	x := mat.NewVecDense(len(v), nil)
	for i, e := range v {
		x.SetVec(i, float64(e))
	}
	return x
}

func inverseHessian(points, gradients []*mat.VecDense, history int) *mat.Dense {
	n, last := points[0].Len(), len(points)-1
	h := mat.NewDense(n, n, nil)
	for k := max(0, last-history); k < last; k++ {
		var s, y mat.VecDense
		s.SubVec(points[k+1], points[k])
		y.SubVec(gradients[k+1], gradients[k])
		if k == max(0, last-history) {
			var newest, change mat.VecDense
			newest.SubVec(points[last], points[last-1])
			change.SubVec(gradients[last], gradients[last-1])
			for i := range n {
				h.Set(i, i, mat.Dot(&newest, &change)/mat.Dot(&change, &change))
			}
		}
		left := mat.NewDense(n, n, nil)
		left.Outer(-1/mat.Dot(&s, &y), &s, &y)
		for i := range n {
			left.Set(i, i, left.At(i, i)+1)
		}
		var half, full, add mat.Dense
		half.Mul(left, h)
		full.Mul(&half, left.T())
		add.Outer(1/mat.Dot(&s, &y), &s, &s)
		h.Add(&full, &add)
	}
	return h
}

// Rosenbrock's function has its minimum at (1, 1), in a curved valley. Steepest descent needs thousands of steps.
func TestLBFGSFollowsACurvedValley(t *testing.T) {
	looks := 0
	w, d := searching(&optim.LBFGS{History: 5, Evaluations: 25}, optim.Objective{Evaluate: func(w, g []float32) (float64, error) {
		looks++
		x, y := float64(w[0]), float64(w[1])
		g[0], g[1] = float32(-2*(1-x)-400*x*(y-x*x)), float32(200*(y-x*x))
		return (1-x)*(1-x) + 100*(y-x*x)*(y-x*x), nil
	}}, 2)
	w[0], w[1] = -1.2, 1
	n := 0
	for ; n < 100 && (math.Abs(float64(w[0]-1)) > 1e-3 || math.Abs(float64(w[1]-1)) > 1e-3); n++ {
		fatal.If(t, d.Next())
	}
	if n == 100 || looks > 80 {
		t.Errorf("at %v after %d iterations and %d looks", w, n, looks)
	}
}

// All evaluated points must be feasible, because a loss may be undefined elsewhere. Projection after each step alone
// does not ensure this for a search along a line that leaves the set.
func TestLBFGSLooksAtFeasiblePointsOnly(t *testing.T) {
	p := newLeastSquares(40, 10, 1)
	project := func(w []float32) {
		for i := range w {
			w[i] = max(w[i], 0.01)
		}
	}
	w, d := searching(&optim.LBFGS{History: 5, Evaluations: 25}, optim.Objective{Evaluate: p.evaluate, Project: project}, 10)
	project(w)
	for range 100 {
		if err := d.Next(); errors.Is(err, optim.ErrMinimum) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, seen := range p.seen {
		for i, v := range seen {
			if v < 0.01 {
				t.Fatalf("looks at %v in element %d", v, i)
			}
		}
	}
	kkt(t, p, w, 0.01)
}

// kkt checks the optimality conditions of a minimum over w >= low: the gradient is 0 where w > low, and not negative
// where w = low.
func kkt(t *testing.T, p *leastSquares, w []float32, low float32) {
	t.Helper()
	g := make([]float32, len(w))
	fatal.If(t, expect.Err(p.evaluate(w, g)))
	inside := 0
	for i, v := range w {
		switch {
		case v > low:
			inside++
			if math.Abs(float64(g[i])) > 1e-2 {
				t.Errorf("element %d is %v, inside, and its slope is %v", i, v, g[i])
			}
		case g[i] < -1e-2:
			t.Errorf("element %d is at the border, and its slope is %v", i, g[i])
		}
	}
	if inside == 0 || inside == len(w) {
		t.Errorf("%d of %d elements are inside: the set does not matter", inside, len(w))
	}
}
