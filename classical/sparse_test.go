package classical

import (
	"math"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// counts returns a sparse matrix of counts with a low rank, and the same matrix with its zeros.
func counts(t testing.TB, n, p int) (entries *data.Images, dense Matrix) {
	rng := random.Stream(3, "counts", 0)
	const k = 4
	h, w := make([]float64, n*k), make([]float64, k*p)
	for i := range h {
		h[i] = math.Pow(rng.Float64(), 3)
	}
	for i := range w {
		w[i] = math.Pow(rng.Float64(), 6)
	}
	dense = Matrix{make([]float32, n*p), p}
	starts, columns, values := []int{0}, []int32(nil), []float32(nil)
	for i := range n {
		for j := range p {
			rate := 0.0
			for q := range k {
				rate += h[i*k+q] * w[q*p+j]
			}
			if v := math.Floor(3*rate + rng.Float64()); v > 0 && i != 7 && j != 5 { // an empty row and column
				columns, values = append(columns, int32(j)), append(values, float32(v))
				dense.values[i*p+j] = float32(v)
			}
		}
		starts = append(starts, len(columns))
	}
	m, err := data.NewEntries(starts, columns, values, p)
	fatal.If(t, err)
	return m.WithZeros(), dense
}

// The oracle is the same method on the matrix with its zeros.
func TestSparseMatricesAreFittedLikeDenseOnes(t *testing.T) {
	nmf := func(solver, loss, init string) *NMF {
		return &NMF{Components: 3, Solver: solver, Loss: loss, Init: init, Iterations: 12}
	}
	for name, method := range map[string]Method{
		"pca": &PCA{Components: 3}, "hals": nmf("hals", "euclidean", "nndsvda"), "hals random": nmf("hals", "euclidean", "random"),
		"mu": nmf("mu", "euclidean", "nndsvda"), "kl": nmf("mu", "kl", "nndsvda"), "kl random": nmf("mu", "kl", "random"),
		"penalised":  &NMF{Components: 3, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 12, L1Codes: 0.01, L1Atoms: 0.01},
		"sparse":     &SparseNMF{Components: 3, CodeSparsity: 0.5, AtomSparsity: 0.4, Solver: "hals", Per: "atom", Init: "random", Iterations: 12},
		"gradient":   &SparseNMF{Components: 3, CodeSparsity: 0.5, Solver: "gradient", Per: "atom", Init: "random", Iterations: 6},
		"orthogonal": &OrthogonalNMF{Components: 3, Orthogonal: "atoms", Init: "random", Iterations: 12},
		"local":      &LocalNMF{Components: 3, Init: "random", Iterations: 12},
		"itakura":    &NMF{Components: 3, Solver: "mu", Loss: "itakura_saito", Floor: usualFloor, Init: "nndsvda", Iterations: 3},
		"beta":       &NMF{Components: 3, Solver: "mu", Loss: "beta", Beta: 1.5, Init: "nndsvda", Iterations: 6},
		"cubic":      &NMF{Components: 3, Solver: "mu", Loss: "beta", Beta: 3, Init: "random", Iterations: 6},
		"kl rewards": &NMF{Components: 3, Solver: "mu", Loss: "kl", Init: "random", Iterations: 6, L1Codes: 0.01, L2Atoms: 0.01},
		"semi":       &SemiNMF{Components: 3, Iterations: 12},
		"convex":     &ConvexNMF{Components: 3, Iterations: 12},
		"separable":  &SeparableNMF{Components: 3, Anchors: "images"},
		"kmeans":     &KMeans{Components: 3, Iterations: 12, Restarts: 1},
		"soft":       &KMeans{Components: 3, Iterations: 5, Restarts: 1, Soft: 1},
		"batch":      &KMeans{Components: 3, Iterations: 3, Batch: 50},
		"gmm":        &GMM{Components: 3, Covariance: "diagonal", Init: "kmeans", Floor: 1e-2, Iterations: 5, Restarts: 1},
		"factors":    &FactorAnalysis{Components: 3, Floor: 1e-2, Iterations: 5},
		"bmm":        &BMM{Components: 3, Init: "kmeans", Floor: 1e-2, Iterations: 5, Restarts: 1},
		"batches":    &NMF{Components: 3, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 3, Batch: 100, ForgetFactor: 0.7},
		"dictionary": &Dictionary{Components: 3, L1: 0.1, Iterations: 3, Batch: 100, ForgetFactor: 0.7},
	} {
		for _, size := range [][2]int{{300, 40}, {60, 150}} {
			entries, dense := counts(t, size[0], size[1])
			for _, unit := range []float32{1, 1e-6} {
				if unit != 1 && name == "bmm" {
					continue
				}
				rows := Images(entries)
				if unit != 1 {
					rows = times1e6{entries}
				}
				a, b := newModel(t, method, []int{size[1]}, 1), newModel(t, method, []int{size[1]}, 1)
				x := multiplied(dense.values, unit, false)
				if name == "bmm" {
					rows, x = ones{entries}, atMost1(x)
				}
				got, want := fitAll(t, a, rows), fitAll(t, b, Matrix{x, size[1]})
				if i := len(want) - 1; len(got) != len(want) || math.Abs(got[i]-want[i]) > 1e-4*math.Abs(want[i]) {
					t.Errorf("%s, %v times %g: objectives %v, want %v", name, size, unit, got, want)
					continue
				}
				if d := worst(a.Atoms().Values, b.Atoms().Values) / float64(largest(b.Atoms().Values)); d > 1e-3 {
					t.Errorf("%s, %v times %g: atoms differ by %v", name, size, unit, d)
				}
				codes := encode(t, b, x)
				if d := worst(encode(t, a, x), codes) / float64(largest(codes)); d > 2e-3 {
					t.Errorf("%s, %v times %g: codes differ by %v", name, size, unit, d)
				}
			}
		}
	}
}

func largest(values []float32) (most float32) {
	for _, v := range values {
		most = max(most, v, -v)
	}
	return most
}

// ones is a sparse matrix with values of at most 1.
type ones struct{ *data.Images }

func (s ones) Batch(dst []float32, indices []int) {
	s.Images.Batch(dst, indices)
	copy(dst, atMost1(dst[:len(indices)*s.Pixels()]))
}

func (s ones) Entries(i int) ([]int32, []float32) {
	columns, values := s.Images.Entries(i)
	return columns, atMost1(values)
}

func atMost1(values []float32) []float32 {
	all := lists.Map(values, func(v float32) float32 { return min(v, 1) })
	return all
}

// times1e6 is a sparse matrix times 1e-6.
type times1e6 struct{ *data.Images }

func (s times1e6) Batch(dst []float32, indices []int) {
	s.Images.Batch(dst, indices)
	multiplied(dst[:len(indices)*s.Pixels()], 1e-6, true)
}

func (s times1e6) Entries(i int) ([]int32, []float32) {
	columns, values := s.Images.Entries(i)
	return columns, multiplied(values, 1e-6, false)
}
