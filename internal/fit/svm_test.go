package fit

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/fatal"
)

// clouds returns n points of overlapping classes.
func clouds(r *rand.Rand, n, width, classes int) (features []float32, labels []int) {
	features, labels = make([]float32, n*width), make([]int, n)
	for i := range labels {
		labels[i] = r.IntN(classes)
		for j := range width {
			features[i*width+j] = float32(r.NormFloat64() + float64((labels[i]+j)%classes))
		}
	}
	return features, labels
}

// From a start far from the solution the full Newton step overshoots, and the trust region has to shrink it.
func TestTheSolverConvergesFromAnyStart(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	features, labels := clouds(r, 200, 5, 3)
	p, err := Of("svm", features, 5, labels)
	fatal.If(t, err)
	for range 20 {
		cs := []float64{math.Exp(3 * r.NormFloat64()), math.Exp(3 * r.NormFloat64()), 2}
		solutions := make([][]float64, 3)
		err := p.path(context.Background(), cs, 1e-10, func(class, step int, w []float64) {
			if step == 2 {
				solutions[class] = slices.Clone(w)
			}
		})
		fatal.If(t, err)
		cold, err := p.SVM(context.Background(), 2, 1e-10)
		fatal.If(t, err)
		for i, w := range slices.Concat(solutions...) {
			if math.Abs(w-cold[i]) > 1e-6 {
				t.Fatalf("from C %v weight %d is %g, from zero %g", cs[:2], i, w, cold[i])
			}
		}
	}
}

func TestTheTrustRegionStepStaysInsideAndDecreasesTheModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	features, labels := clouds(r, 100, 6, 2)
	p, _ := Of("svm", features, 6, labels)
	s := newTron(p, 1, newMoments(p))
	s.setGradient(3)
	free, _ := s.model(3, math.Inf(1))
	length := Norm(s.step)
	for _, share := range []float64{0.01, 0.3, 0.9, 1.1} {
		decrease, bound := s.model(3, share*length)
		if got := Norm(s.step); got > share*length*(1+1e-12) || bound != (share < 1) || decrease <= 0 || decrease > free*(1+1e-9) {
			t.Errorf("radius %g of the free step: length %g, bound %t, decrease %g of %g", share, got/length, bound, decrease, free)
		}
	}
}
