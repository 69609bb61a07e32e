package constraints

import (
	"math"

	"tessera/internal/engine/kernel"
)

// NonNeg keeps every weight >= 0: the projection argmin ||v-w|| over v >= 0, which is v = max(w, 0).
//
// Source: the projection step of projected gradient descent on the non-negative orthant, as in Keras' NonNeg.
type NonNeg struct{}

func init() {
	Registry.Register("nonneg", "every weight >= 0: w <- max(w, 0)", func() Constraint { return &NonNeg{} })
}

func (NonNeg) Pointwise() {}

func (NonNeg) Project(w []float32, _ []int) {
	kernel.Clamp(w, 0, float32(math.Inf(1)))
}

// Violation implements [Constraint]. It is the magnitude of the most negative weight.
func (NonNeg) Violation(w []float32, _ []int) float64 {
	var worst float32
	for _, v := range w {
		worst = max(worst, -v)
	}
	return float64(worst)
}
