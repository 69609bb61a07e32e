package boltzmann

import (
	"math"
	"math/rand/v2"
	"testing"
)

// states32 returns the units of a state.
func states32(state, n int) []float32 {
	v := make([]float32, n)
	for i, b := range bits(state, n) {
		v[i] = float32(b)
	}
	return v
}

// A net of two machines with the same weights, of which the second is the first one upside down, is the first machine: every
// draw of the bound is the log-likelihood.
func TestTheBoundOfTiedMachinesIsTheLogLikelihood(t *testing.T) {
	first := drawn(5, 4, 1.3, 0)
	second := &Machine{Weight: make([]float32, len(first.Weight)), Bias: first.VisibleBias, VisibleBias: first.Bias}
	for i := range 5 {
		for j := range 4 {
			second.Weight[j*5+i] = first.Weight[i*4+j]
		}
	}
	n := NewNet([]*Machine{first, second})
	r := rand.New(rand.NewPCG(1, 2))
	for state := range 32 {
		v := states32(state, 5)
		want := -first.FreeEnergy(v)
		for range 3 {
			if got, _ := n.Bound(v, r); math.Abs(got-want) > 1e-4 {
				t.Fatalf("state %d: got %v, want %v", state, got, want)
			}
		}
	}
}

// The mean of many draws is the sum over the states of the hidden units, and at most the logarithm of the sum of the joint
// distribution.
func TestTheBoundIsThatOfAnEnumeration(t *testing.T) {
	for _, deviation := range []float64{0, 0.7} {
		first, second := drawn(5, 4, 1.3, deviation), drawn(4, 3, 0.9, 0)
		n := NewNet([]*Machine{first, second})
		v := []float32{1, 0, 1, 1, 0}
		if deviation > 0 {
			v = []float32{0.3, -0.8, 1.2, 0.1, 0.6}
		}
		want, whole := 0.0, 0.0 // the bound, and p(v) Z
		for state := range 16 {
			h := bits(state, 4)
			q, down := 0.0, 0.0 // log q(h | v), log p(v | h)
			for j := range 4 {
				z := 0.0
				for i, x := range v {
					z += float64(x) * float64(first.Weight[i*4+j])
				}
				if deviation > 0 {
					z /= deviation * deviation
				}
				z += float64(first.Bias[j])
				q += h[j]*z - math.Log(1+math.Exp(z))
			}
			for i, x := range v {
				z := float64(first.VisibleBias[i])
				for j := range 4 {
					z += h[j] * float64(first.Weight[i*4+j])
				}
				if deviation > 0 {
					d := (float64(x) - z) / deviation
					down += -d*d/2 - math.Log(deviation*math.Sqrt(2*math.Pi))
				} else {
					down += float64(x)*z - math.Log(1+math.Exp(z))
				}
			}
			prior := 0.0
			for up := range 8 {
				prior += math.Exp(negativeEnergy(second, h, bits(up, 3)))
			}
			want += math.Exp(q) * (down + math.Log(prior) - q)
			whole += math.Exp(down) * prior
		}
		const draws = 20000
		r, sum, squares := rand.New(rand.NewPCG(3, 4)), 0.0, 0.0
		for range draws {
			x, top := n.Bound(v, r)
			if len(top) != 4 {
				t.Fatalf("the last machine has %d visible units, want 4", len(top))
			}
			sum += x / draws
			squares += x * x / draws
		}
		tolerance := 5 * math.Sqrt((squares-sum*sum)/draws)
		if math.Abs(sum-want) > tolerance || !(want < math.Log(whole)) {
			t.Errorf("deviation %v: got %v, want %v within %v, below %v", deviation, sum, want, tolerance, math.Log(whole))
		}
	}
}
