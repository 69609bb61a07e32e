package optim_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/constraints"
	"tessera/optim"
)

// spheres returns the projection that scales rows of the given length to norm 1. The set of such rows is not convex: a
// straight line leaves it at once.
func spheres(length int) (project func(w []float32)) {
	return func(w []float32) { constraints.UnitNorm{}.Project(w, []int{len(w) / length, length}) }
}

// On spheres the line search compares projected points with slopes along a straight line, so its conditions are only a
// heuristic. Three properties remain: every iteration lowers the objective, all evaluated points are feasible, and the
// search achieves most of the possible reduction.
func TestLBFGSGoesDownOnSpheresToo(t *testing.T) {
	const length, n = 4, 12
	for seed := range uint64(6) {
		p := newLeastSquares(60, n, seed)
		project := spheres(length)
		w, d := searching(&optim.LBFGS{History: 15, Evaluations: 25}, optim.Objective{Evaluate: p.evaluate, Project: project}, n)
		r := rand.New(rand.NewPCG(seed, 9))
		for i := range w {
			w[i] = float32(r.NormFloat64())
		}
		project(w)
		g := make([]float32, n)
		first, _ := p.evaluate(w, g)
		steep := alongSpheres(w, g, length)
		before := first
		for range 100 {
			if err := d.Next(); errors.Is(err, optim.ErrMinimum) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			now, _ := p.evaluate(w, g)
			if !(now < before) {
				t.Fatalf("from %v to %v", before, now)
			}
			before = now
		}
		if flat := alongSpheres(w, g, length); !(before < 0.6*first) || !(flat < 0.25*steep) {
			t.Errorf("seed %d: from %v to %v, with slopes along the spheres of %v, then %v", seed, first, before, steep, flat)
		}
		for _, seen := range p.seen {
			if worst := (constraints.UnitNorm{}).Violation(seen, []int{n / length, length}); worst > 1e-6 {
				t.Fatalf("looks at %v, %g off the spheres", seen, worst)
			}
		}
	}
}

// alongSpheres returns the norm of the gradient's component tangential to the spheres.
func alongSpheres(w, g []float32, length int) float64 {
	sum := 0.0
	for from := 0; from < len(w); from += length {
		radial := 0.0
		for i := from; i < from+length; i++ {
			radial += float64(w[i]) * float64(g[i])
		}
		for i := from; i < from+length; i++ {
			along := float64(g[i]) - radial*float64(w[i])
			sum += along * along
		}
	}
	return math.Sqrt(sum)
}
