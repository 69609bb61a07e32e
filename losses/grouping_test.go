package losses_test

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/losses"
)

// probabilities returns the softmax of logits.
func probabilities(x []float64) []float64 {
	p, sum := make([]float64, len(x)), 0.0
	for j, v := range x {
		p[j] = math.Exp(v)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p
}

// correlation returns the oracle of the squared correlation between each unit of the score and the group, averaged over the
// units. The first value of the target is a number in [0,1]: the degree to which a sample belongs to group 1.
func correlation(score func([]float64) []float64) oracle {
	return func(x, target [][]float64) float64 {
		n, sum := float64(len(x)), 0.0
		for j := range x[0] {
			var ms, mg float64
			for i := range x {
				ms, mg = ms+score(x[i])[j]/n, mg+target[i][0]/n
			}
			var cov, vs, vg float64
			for i := range x {
				s, g := score(x[i])[j]-ms, target[i][0]-mg
				cov, vs, vg = cov+s*g/n, vs+s*s/n, vg+g*g/n
			}
			sum += cov * cov / (vs*vg + 1e-4)
		}
		return sum / float64(len(x[0]))
	}
}

// hsic returns trace(K H L H) / n², computed from the matrices of the definition.
func hsic(x, target [][]float64) float64 {
	n := len(x)
	matrix := func(f func(i, j int) float64) [][]float64 {
		m := make([][]float64, n)
		for i := range m {
			for j := range n {
				m[i] = append(m[i], f(i, j))
			}
		}
		return m
	}
	times := func(a, b [][]float64) [][]float64 {
		return matrix(func(i, j int) (sum float64) {
			for k := range n {
				sum += a[i][k] * b[k][j]
			}
			return sum
		})
	}
	k := matrix(func(i, j int) float64 {
		d, a, b := 0.0, probabilities(x[i]), probabilities(x[j])
		for u := range a {
			d += (a[u] - b[u]) * (a[u] - b[u])
		}
		return math.Exp(-d / (2 * 0.7 * 0.7))
	})
	l := matrix(func(i, j int) float64 {
		return target[i][0]*target[j][0] + (1-target[i][0])*(1-target[j][0])
	})
	h := matrix(func(i, j int) float64 {
		if i == j {
			return 1 - 1/float64(n)
		}
		return -1 / float64(n)
	})
	trace := 0.0
	for i, row := range times(times(k, h), times(l, h)) {
		trace += row[i]
	}
	return trace / float64(n*n)
}

func TestIndependenceRefusesProbabilitiesOfOneUnit(t *testing.T) {
	l := configured(t, "independence", nil)
	expect.AnyError(t, l.(losses.UnitsChecker).CheckUnits(1), "the probabilities of one unit is accepted")
}
