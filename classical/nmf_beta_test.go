package classical

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// plainObjective returns the objective of an NMF, computed from its definition by plain loops over the observed entries.
func plainObjective(s *NMF, x, codes, atoms []float32, p int) float64 {
	k, n := s.Components, len(x)/p
	f := &plain{n, p, k, vectors.Wide(x), vectors.Wide(codes), vectors.Wide(atoms)}
	var sum, count float64
	for i := range n {
		for j := range p {
			v := f.x[i*p+j]
			if math.IsNaN(v) {
				continue
			}
			count++
			if s.exponent() <= 0 {
				v = max(v, s.Floor)
			}
			sum += plainBeta(v, f.product(i, j), s.exponent())
		}
	}
	penalty := func(values []float64, l1, l2 float64) (sum float64) {
		for _, v := range values {
			sum += l1*v + l2/2*v*v
		}
		return sum
	}
	sum += float64(p)*penalty(f.h, s.L1Codes, s.L2Codes) + float64(n)*penalty(f.w, s.L1Atoms, s.L2Atoms)
	if s.exponent() == 2 {
		sum *= 2
	}
	return sum / count
}

// plainBeta returns the beta-divergence of two numbers.
func plainBeta(x, y, b float64) float64 {
	y = max(y, 1e-9)
	switch {
	case b == 0:
		return x/y - math.Log(x/y) - 1
	case b == 1 && x == 0:
		return y
	case b == 1:
		return x*math.Log(x/y) - x + y
	}
	return (math.Pow(x, b) + (b-1)*math.Pow(y, b) - b*x*math.Pow(y, b-1)) / (b * (b - 1))
}

// The expected values come from plain multiplicative rules with Fevotte and Idier's exponent.
func TestBetaRulesAgreeWithPlainLoops(t *testing.T) {
	for _, s := range []*NMF{
		{Loss: "itakura_saito", Floor: 0.02}, {Loss: "beta", Beta: 0.5}, {Loss: "beta", Beta: 1.3}, {Loss: "beta", Beta: 3},
		{Loss: "euclidean", L1Codes: 0.004, L2Atoms: 0.01}, {Loss: "kl", L2Codes: 0.01, L1Atoms: 0.003},
	} {
		s.Components, s.Solver, s.Init, s.Iterations = 5, "mu", "random", 10
		m := newModel(t, s, mixedShape, 1).(*factorisation)
		fatal.If(t, m.Begin(t.Context(), mixed(150)))
		want := plainOf(m)
		for range 3 {
			fatal.If(t, expect.Err(m.Step(t.Context())))
			want.beta(s)
		}
		got := plainOf(m)
		for i := range got.n { // products: atoms without penalties are normalised
			for j := range got.p {
				if a, b := got.product(i, j), want.product(i, j); math.Abs(a-b) > 1e-3*max(1, b) {
					t.Fatalf("%s %v, image %d, pixel %d: got %v, want %v", s.Loss, s.Beta, i, j, a, b)
				}
			}
		}
	}
}

// beta updates the atoms, then the codes.
func (f *plain) beta(s *NMF) {
	b, g := s.exponent(), 1.0
	if b < 1 {
		g = 1 / (2 - b)
	} else if b > 2 {
		g = 1 / (b - 1)
	}
	for _, codes := range []bool{false, true} {
		entries, l1, l2 := f.w, float64(f.n)*s.L1Atoms, float64(f.n)*s.L2Atoms
		if codes {
			entries, l1, l2 = f.h, float64(f.p)*s.L1Codes, float64(f.p)*s.L2Codes
		}
		up, down := make([]float64, len(entries)), make([]float64, len(entries))
		for i := range f.n {
			for j := range f.p {
				y := max(f.product(i, j), 1e-9)
				for q := range f.k {
					e, other := q*f.p+j, f.h[i*f.k+q]
					if codes {
						e, other = i*f.k+q, f.w[q*f.p+j]
					}
					up[e] += other * f.x[i*f.p+j] * math.Pow(y, b-2)
					down[e] += other * math.Pow(y, b-1)
				}
			}
		}
		for e, v := range entries {
			if v > 0 {
				entries[e] *= math.Pow(up[e]/(down[e]+l1+l2*v), g)
			}
		}
	}
}

// At the end of a penalised coordinate descent, no step along the gradient of a single entry lowers the objective.
func TestPenalisedCoordinateDescentIsStationary(t *testing.T) {
	s := &NMF{Components: 5, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 2000, L1Codes: 0.01, L2Codes: 0.01, L1Atoms: 0.02, L2Atoms: 0.01}
	m := newModel(t, s, mixedShape, 1).(*factorisation)
	fitAll(t, m, mixed(150))
	f := plainOf(m)
	for q := range f.k {
		for i := range f.n {
			gradient, scale := float64(f.p)*(s.L1Codes+s.L2Codes*f.h[i*f.k+q]), 0.0
			for j := range f.p {
				gradient += f.w[q*f.p+j] * (f.product(i, j) - f.x[i*f.p+j])
				scale += f.w[q*f.p+j] * (1 + f.x[i*f.p+j])
			}
			if h := f.h[i*f.k+q]; h > 0 && math.Abs(gradient) > 2e-3*scale || gradient < -2e-3*scale {
				t.Fatalf("image %d, atom %d: code %v, gradient %v of %v", i, q, h, gradient, scale)
			}
		}
	}
}

func TestAnL1PenaltyMakesCodesSparser(t *testing.T) {
	zeros := func(l1 float64) (count int) {
		s := &NMF{Components: 7, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 200, L1Codes: l1, L2Codes: 1e-6, L2Atoms: 0.01}
		m := newModel(t, s, mixedShape, 1)
		fitAll(t, m, mixed(300))
		for _, v := range m.Codes() {
			if v == 0 {
				count++
			}
		}
		return count
	}
	if without, with := zeros(0), zeros(0.05); with <= without {
		t.Errorf("%d codes are 0 without a penalty, %d with it", without, with)
	}
}
