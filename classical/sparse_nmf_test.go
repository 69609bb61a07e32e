package classical

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/hoyer"
	"tessera/internal/vectors"
	"tessera/metrics"
)

func TestSparsityIsWhatWasAskedFor(t *testing.T) {
	eachVariant(t, func(t *testing.T, v variant) {
		s, ok := v.method.(*SparseNMF)
		if !ok {
			return
		}
		const n, p = 300, 30
		images := mixed(n)
		m := newModel(t, s, mixedShape, 1)
		fitAll(t, m, images)
		k, codes, atoms := m.Units(), m.Codes(), m.Atoms().Values
		byAtom := transpose(codes, n, k)
		for j := range k {
			atom, activations := atoms[j*p:(j+1)*p], byAtom[j*n:(j+1)*n]
			if s.AtomSparsity > 0 {
				near(t, "of an atom", metrics.Hoyer(atom), s.AtomSparsity)
			}
			if s.CodeSparsity > 0 && s.Per == "atom" {
				near(t, "of an atom's activations", metrics.Hoyer(activations), s.CodeSparsity)
				near(t, "norm", vectors.Norm(activations), 1)
			}
		}
		if s.Per != "image" {
			return
		}
		for _, codes := range [][]float32{codes, encode(t, m, mixed(500).values)} {
			for i := range len(codes) / k {
				if code := codes[i*k : (i+1)*k]; vectors.Norm(code) > 0 {
					near(t, "of an image's code", metrics.Hoyer(code), s.CodeSparsity)
				}
			}
		}
	})
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-4 {
		t.Fatalf("sparsity %s: got %v, want %v", what, got, want)
	}
}

// No feasible change of the activations of one atom, or of one atom, lowers the error after the update of this row. The test
// tries steps in many directions, with projection.
func TestOneRowGetsTheBestFeasibleValues(t *testing.T) {
	const n, k = 60, 4
	images := mixed(n)
	m := newModel(t, &SparseNMF{Components: k, Solver: "hals", Per: "atom", CodeSparsity: 0.5, Init: "random", Iterations: 2}, mixedShape, 1).(*factorisation)
	fitAll(t, m, images)
	// The last row that an iteration updates is the last atom's.
	last := m.codes[(k-1)*n:]
	best := meanSquares(images.values, m.Codes(), m.atoms, nil, k, 30)
	kept := append([]float32(nil), last...)
	l1 := hoyer.Norm(n, 0.5)
	for try := range 300 {
		for i := range last {
			last[i] = kept[i] + 0.01*float32(math.Sin(float64(try*n+i)*1.7))
		}
		hoyer.Project(last, l1, 1)
		if e := meanSquares(images.values, m.Codes(), m.atoms, nil, k, 30); e < best*(1-1e-6) {
			t.Fatalf("a feasible neighbour has the error %v, the update %v", e, best)
		}
	}
}

// Both solvers minimise the same error. The solver hals needs fewer iterations.
func TestBothSparseSolversComeToSimilarErrors(t *testing.T) {
	images := mixed(300)
	errs := map[string]float64{}
	for _, solver := range []string{"hals", "gradient"} {
		s := &SparseNMF{Components: 6, Solver: solver, Per: "atom", CodeSparsity: 0.4, Init: "random", Iterations: 1500}
		objectives := fitAll(t, newModel(t, s, mixedShape, 1), images)
		errs[solver] = objectives[len(objectives)-1]
	}
	if r := errs["gradient"] / errs["hals"]; r < 0.7 || r > 1.3 {
		t.Errorf("errors %v", errs)
	}
}

func TestSettingsThatExcludeEachOtherAreReported(t *testing.T) {
	for _, c := range []struct {
		key    string
		method interface{ Check() error }
	}{
		{"loss", &NMF{Loss: "kl", Solver: "hals"}},
		{"loss", &NMF{Solver: "hals"}},
		{"solver", &NMF{Loss: "euclidean"}},
		{"init", &NMF{Loss: "euclidean", Solver: "hals"}},
		{"batch", &NMF{Loss: "euclidean", Solver: "mu", Batch: 10}},
		{"code_sparsity", &SparseNMF{Per: "atom", Solver: "hals"}},
		{"per", &SparseNMF{Per: "image", CodeSparsity: 0.5, Solver: "hals"}},
		{"per", &SparseNMF{CodeSparsity: 0.5, Solver: "hals"}},
		{"solver", &SparseNMF{CodeSparsity: 0.5, Per: "atom"}},
		{"init", &SparseNMF{CodeSparsity: 0.5, Per: "atom", Solver: "hals"}},
	} {
		wantKey(t, c.method.Check(), c.key)
		expect.AnyError(t, expect.Err(c.method.(Method).New([]int{2, 2}, 1)), c.key, "New accepts it")
	}
}

// The errors of Hoyer's program are 0.023178, 0.020564 and 0.019213, means over three seeds: see testdata/nmfsc.py.
func TestTheGradientSolverNeedsNoMoreIterationsThanHoyersProgram(t *testing.T) {
	s := &SparseNMF{Components: 40, CodeSparsity: 0.6, Per: "atom", Solver: "gradient", Init: "random", Iterations: 150}
	errs := fitAll(t, newModel(t, s, []int{28, 28}, 1), fashion(t, 4000))
	for after, most := range map[int]float64{60: 0.023178, 100: 0.020564, 150: 0.019213} {
		if e := errs[after-1]; e > most {
			t.Errorf("after %d iterations the error is %.6f, want at most %v", after, e, most)
		}
	}
}
