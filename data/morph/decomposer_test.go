package morph

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func decomposers(t *testing.T, shape []int, each func(w *Decomposer)) {
	t.Helper()
	for _, method := range []Method{AMD, PADO} {
		for _, original := range []bool{false, true} {
			w, err := NewDecomposer(Decomposition{Method: method, Levels: 3, Start: 1, Step: 1, Original: original}, shape)
			fatal.If(t, err)
			each(w)
		}
	}
}

func TestEveryLevelHasTheValueOfItsSource(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for _, shape := range testShapes {
		decomposers(t, shape, func(w *Decomposer) {
			image := make([]float64, w.grid.pixels())
			single := make([]float32, len(image))
			for i := range image {
				single[i] = float32(r.IntN(6)) / 8 // many ties
				image[i] = float64(single[i])
			}
			levels, sources := make([]float32, w.Stack()*len(image)), make([]int32, w.Stack()*len(image))
			w.LevelsOf(levels, single)
			Sources(w, sources, image)
			for i, v := range levels {
				if single[sources[i]] != v {
					t.Fatalf("%s %v: value %d is %v, its source's is %v", w.Method, shape, i, v, single[sources[i]])
				}
			}
		})
	}
}

// A' is the adjoint of the linear map A if <g, A(x)> = <A'(g), x> for all g and x.
func TestTheGradientOfCombineIsItsAdjoint(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	draw := func(n int) []float64 {
		v := lists.Of(n, func(int) float64 { return r.NormFloat64() })
		return v
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	for _, shape := range testShapes {
		decomposers(t, shape, func(w *Decomposer) {
			n := w.grid.pixels()
			image, levels, g := draw(n), draw(w.Stack()*n), draw(w.Groups()*n)
			out, ofImage, ofLevels := make([]float64, len(g)), make([]float64, n), make([]float64, len(levels))
			Combine(w.Decomposition, w.grid.channels, out, image, levels)
			CombineGradient(w.Decomposition, w.grid.channels, ofImage, ofLevels, g)
			if a, b := dot(g, out), dot(ofImage, image)+dot(ofLevels, levels); math.Abs(a-b) > 1e-9*(1+math.Abs(a)) {
				t.Errorf("%s %v: %v and %v", w.Method, shape, a, b)
			}
		})
	}
}
