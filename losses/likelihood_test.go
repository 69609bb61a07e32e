package losses

import (
	"math"
	"testing"

	"tessera/internal/expect"
)

// The log-likelihoods are sums of those of one value, from the textbook's densities.
func TestLogLikelihoodsAreThoseOfTheirDistributions(t *testing.T) {
	y, x, variance := []float32{0.25, 0.5, 0.875, 0.125}, []float32{1, 0, 0.75, 0.5}, 0.3
	normal, bernoulli := 0.0, 0.0
	for i := range y {
		p, v := float64(y[i]), float64(x[i])
		normal += math.Log(math.Exp(-(v-p)*(v-p)/2/variance) / math.Sqrt(2*math.Pi*variance))
		bernoulli += v*math.Log(p) + (1-v)*math.Log(1-p)
	}
	expect.Near(t, (&MSE{}).LogLikelihood(y, x, variance), normal, 1e-12, "mse")
	expect.Near(t, (BCE{}).LogLikelihood(y, x, 0), bernoulli, 1e-12, "bce")
	if got := (BCE{}).LogLikelihood([]float32{0, 1}, []float32{1, 0}, 0); math.IsInf(got, 0) || got > -20 {
		t.Errorf("bce of impossible values: got %g, want a large negative number", got)
	}
}
