package classical

import (
	"errors"
	"math"
	"slices"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/random"
)

// The samples are mixtures of four parts, with noise; few of the parts of a sample are active.
func TestAConsensusHasThePartsOfTheSamples(t *testing.T) {
	const n, p, k, seeds = 300, 24, 4, 8
	rng := random.Stream(1, "consensus", 0)
	truth, x := make([]float32, k*p), make([]float32, n*p)
	for j := range k {
		for i := range p {
			if i%k == j || rng.Float64() < 0.1 {
				truth[j*p+i] = 0.5 + rng.Float32()
			}
		}
	}
	for i := range n {
		for j := range k {
			if h := float32(rng.ExpFloat64()); rng.Float64() < 0.5 {
				for c := range p {
					x[i*p+c] += h * truth[j*p+c]
				}
			}
		}
		for c := range p {
			x[i*p+c] += 0.02 * rng.Float32()
		}
	}
	method := &NMF{Components: 2, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 100, Tolerance: 1e-5, Restarts: 1}
	before, fits := *method, 0
	list, err := Consensus(t.Context(), method, Matrix{x, p}, []int{1, 4, 7}, seeds, 1, func(done, _ int) { fits = done })
	if err != nil || fits != 3*seeds || *method != before {
		t.Fatalf("%v after %d fits, settings %+v", err, fits, method)
	}
	one, four, seven := list.Rows[0], list.Rows[1], list.Rows[2]
	const mse, consensus, stability = 0, 1, 2
	if s := *four.Values[stability]; one.Values[stability] != nil || s < 0.9 || *seven.Values[stability] > s-0.1 {
		t.Errorf("stabilities %v, %v, %v", one.Values[stability], s, *seven.Values[stability])
	}
	if e := *four.Values[mse]; *four.Values[consensus] > 1.1*e || *one.Values[mse] < 5*e || !(*seven.Values[mse] < e) || four.Deviation > e/10 {
		t.Errorf("errors %+v", list)
	}
	if len(four.Parts) != k || four.LeftOut > 0.1 {
		t.Errorf("parts %+v, left out %v", four.Parts, four.LeftOut)
	}
	for j, s := range four.Parts {
		best := 0.0
		for q := range k {
			dot, a, b := 0.0, 0.0, 0.0
			for i := range p {
				u, v := float64(four.Atoms.Values[j*p+i]), float64(truth[q*p+i])
				dot, a, b = dot+u*v, a+u*u, b+v*v
			}
			best = max(best, dot/math.Sqrt(a*b))
		}
		if best < 0.97 || s.Seeds < seeds-1 || s.Similarity < 0.97 || j > 0 && s.Seeds > four.Parts[j-1].Seeds {
			t.Errorf("part %d, cosine %v with the nearest true part: %+v", j, best, s)
		}
	}
	again, err := Consensus(t.Context(), method, Matrix{x, p}, []int{4}, seeds, 1, nil)
	if err != nil || !slices.Equal(again.Rows[0].Atoms.Values, four.Atoms.Values) {
		t.Errorf("the parts differ from those of the same seed: %v", err)
	}
	var key part.KeyError
	if _, err := Consensus(t.Context(), &PCA{Components: 2}, Matrix{x, p}, []int{2}, seeds, 1, nil); !errors.As(err, &key) || key.Key != "kind" {
		t.Errorf("pca: got %v, want an error of the kind", err)
	}
	for _, wrong := range [][]int{nil, {0}, {n + 1}} {
		expect.AnyError(t, expect.Err(Consensus(t.Context(), method, Matrix{x, p}, wrong, seeds, 1, nil)), "the components", wrong, "are taken")
	}
}
