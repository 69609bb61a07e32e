package classical

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// variant is a method with settings that the laws test.
type variant struct {
	name   string
	method Method
	rises  bool // the objective may rise, and may differ from the objective of the codes
}

// density reports whether the objective is a log density, which has any sign.
func (v variant) density() bool {
	switch v.method.(type) {
	case *GMM, *FactorAnalysis:
		return true
	case *PCA:
		return v.holed()
	}
	return false
}

// mixed returns images that the method accepts.
func (v variant) mixed(n int) Matrix {
	images := mixed(n)
	if _, ok := v.method.(*BMM); ok {
		for i, x := range images.values {
			images.values[i] = min(x/4, 1)
		}
	}
	if v.holed() {
		return punched(images, 0.5)
	}
	return images
}

// holed reports whether the variant fits images with missing entries.
func (v variant) holed() bool { return strings.HasSuffix(v.name, "holes") }

// punched returns images with the given share of the entries missing. Equal images of [mixed] remain equal.
func punched(images Matrix, share float64) Matrix {
	rng, p := random.Stream(13, "holes", 0), images.pixels
	for i := range images.values {
		if rng.Float64() < share {
			images.values[i] = float32(math.NaN())
		}
	}
	if len(images.values) >= 10*p {
		copy(images.values[9*p:10*p], images.values[8*p:9*p])
	}
	return images
}

// variants lists the methods with every setting that selects another algorithm, with seven components and six iterations each.
func variants() []variant { return variantsOf(7, 6) }

// Variants contains the methods of the variants with few components, for the laws.
func Variants() map[string]Method {
	all := map[string]Method{}
	for _, v := range variantsOf(3, 4) {
		if !v.holed() || v.name == "nmf kl holes" { // the laws take samples with missing values too
			all[v.name] = v.method
		}
	}
	return all
}

func variantsOf(k, iterations int) []variant {
	nmf := func(solver, loss, init string, batch int) *NMF {
		return &NMF{Components: k, Solver: solver, Loss: loss, Init: init, Iterations: iterations, Batch: batch, ForgetFactor: 0.7}
	}
	sparse := func(solver, per string, codes, atoms float64) *SparseNMF {
		return &SparseNMF{Components: k, Solver: solver, Per: per, CodeSparsity: codes, AtomSparsity: atoms, Init: "random", Iterations: iterations}
	}
	return append([]variant{
		{"pca", &PCA{Components: k}, false},
		{"kmeans", &KMeans{Components: k, Iterations: iterations}, false},
		{"kmeans restarts", &KMeans{Components: k, Iterations: iterations, Restarts: 3}, false},
		{"nmf hals", nmf("hals", "euclidean", "nndsvda", 0), false},
		{"nmf hals random", nmf("hals", "euclidean", "random", 0), false},
		{"nmf mu", nmf("mu", "euclidean", "nndsvd", 0), false},
		{"nmf kl", nmf("mu", "kl", "nndsvda", 0), false},
		{"nmf batches", nmf("hals", "euclidean", "nndsvda", 100), true},
		{"sparse codes", sparse("hals", "atom", 0.5, 0), false},
		{"sparse atoms", sparse("hals", "atom", 0, 0.7), false},
		{"sparse both", sparse("hals", "atom", 0.4, 0.6), false},
		{"sparse gradient", sparse("gradient", "atom", 0.5, 0), false},
		{"sparse gradient atoms", sparse("gradient", "atom", 0, 0.7), false},
		{"nnsae", &NNSAE{Components: k, Iterations: iterations, LearningRate: 0.01, Regularisation: 2e-4, DecayNegative: 1,
			PlasticityRate: 0.001, Mean: 0.2}, true},
		{"sparse gradient images", sparse("gradient", "image", 0.6, 0.5), false},
	}, newerVariants(k, iterations)...)
}

// newerVariants lists further variants: penalties, divergences and kinds of factorisations.
func newerVariants(k, iterations int) []variant {
	penalised := func(solver, loss string) *NMF {
		return &NMF{Components: k, Solver: solver, Loss: loss, Init: "random", Iterations: iterations, L1Codes: 0.004, L2Codes: 0.002, L1Atoms: 0.003, L2Atoms: 0.001}
	}
	beta := func(loss string, exponent float64) *NMF {
		return &NMF{Components: k, Solver: "mu", Loss: loss, Beta: exponent, Floor: usualFloor, Init: "random", Iterations: iterations}
	}
	mixed := func(covariance string, restarts int) *GMM {
		return &GMM{Components: k, Covariance: covariance, Init: "kmeans", Floor: 1e-4, Iterations: iterations, Restarts: restarts}
	}
	return []variant{
		{"gmm full", mixed(full, 1), true},
		{"gmm diagonal restarts", mixed(diagonal, 3), true},
		{"gmm spherical", mixed(spherical, 1), true},
		{"gmm tied", mixed(tied, 1), true},
		{"bmm", &BMM{Components: k, Init: "random", Floor: 1e-3, Iterations: iterations}, true},
		{"factor analysis", &FactorAnalysis{Components: k, Floor: 1e-4, Iterations: iterations}, true},
		{"matrix", &MatrixFactorisation{Components: k, Solver: "als", Biases: true, RidgeRows: 0.05, RidgeColumns: 0.02, WeightedRidge: true, Iterations: iterations}, false},
		{"matrix non-negative", &MatrixFactorisation{Components: k, Solver: "als", RidgeRows: 0.3, RidgeColumns: 0.1, NonNegative: true, Iterations: iterations}, false},
		{"matrix implicit", &MatrixFactorisation{Components: k, Solver: "als", RidgeRows: 0.3, RidgeColumns: 0.1, Confidence: 3, Iterations: iterations}, true},
		{"matrix sgd", &MatrixFactorisation{Components: k, Solver: "sgd", Biases: true, RidgeRows: 0.02, RidgeColumns: 0.02, LearningRate: 0.01, Decay: 0.9,
			Iterations: iterations}, true},
		{"nmf restarts", &NMF{Components: k, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: iterations, Restarts: 2}, false},
		{"nmf hals penalised", penalised("hals", "euclidean"), false},
		{"nmf mu penalised", penalised("mu", "euclidean"), false},
		{"nmf kl penalised", penalised("mu", "kl"), false},
		{"nmf itakura-saito", beta("itakura_saito", 0), false},
		{"nmf beta 0.5", beta("beta", 0.5), false},
		{"nmf beta 3", beta("beta", 3), false},
		{"orthogonal atoms", &OrthogonalNMF{Components: k, Orthogonal: "atoms", Init: "random", Iterations: iterations}, true},
		{"orthogonal codes", &OrthogonalNMF{Components: k, Orthogonal: "codes", Init: "random", Iterations: iterations, Restarts: 2}, true},
		{"local", &LocalNMF{Components: k, Init: "random", Iterations: iterations}, true},
		{"semi", &SemiNMF{Components: k, Iterations: iterations}, false},
		{"convex", &ConvexNMF{Components: k, Iterations: iterations, Restarts: 2}, false},
		{"separable pixels", &SeparableNMF{Components: k, Anchors: "pixels", Normalised: true}, false},
		{"separable images", &SeparableNMF{Components: k, Anchors: "images"}, false},
		{"pca holes", &PCA{Components: k, Iterations: iterations}, true},
		{"nmf hals holes", &NMF{Components: k, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: iterations}, false},
		{"nmf mu holes", &NMF{Components: k, Solver: "mu", Loss: "euclidean", Init: "nndsvd", Iterations: iterations}, false},
		{"nmf kl holes", &NMF{Components: k, Solver: "mu", Loss: "kl", Init: "random", Iterations: iterations, Restarts: 2}, false},
		{"nmf hals penalised holes", penalised("hals", "euclidean"), false},
		{"nmf kl penalised holes", penalised("mu", "kl"), false},
		{"sparse both holes", &SparseNMF{Components: k, Solver: "hals", Per: "atom", CodeSparsity: 0.4, AtomSparsity: 0.6, Init: "random", Iterations: iterations}, false},
		{"sparse gradient holes", &SparseNMF{Components: k, Solver: "gradient", Per: "atom", CodeSparsity: 0.5, Init: "random", Iterations: iterations}, false},
		{"sparse gradient images holes", &SparseNMF{Components: k, Solver: "gradient", Per: "image", CodeSparsity: 0.6, Init: "random", Iterations: iterations}, false},
		{"kmeans batches", &KMeans{Components: k, Iterations: iterations, Batch: 100}, true},
		{"kmeans soft batches restarts", &KMeans{Components: k, Iterations: iterations, Batch: 64, Soft: 0.5, Restarts: 2}, true},
		{"kmeans soft", &KMeans{Components: k, Iterations: iterations, Soft: 0.3}, true},
		{"dictionary", &Dictionary{Components: k, L1: 0.1, Iterations: iterations, Batch: 100, ForgetFactor: 0.7}, true},
		{"dictionary nonneg", &Dictionary{Components: k, L1: 0.1, NonNegative: true, Iterations: iterations, Batch: 100, ForgetFactor: 0.7}, true},
	}
}

// mixed returns n images of 6 x 5 pixels: sums of five random parts and noise, a pixel that is always 0, an image of
// zeros, and two equal images.
func mixed(n int) Matrix {
	const p = 30
	rng := random.Stream(11, "mixed", 0)
	parts := lists.Of(5*p, func(int) float64 { return max(rng.NormFloat64()-0.5, 0) })
	x := make([]float32, n*p)
	for i := range n {
		for q := range 5 {
			weight := max(rng.NormFloat64(), 0)
			for j := range p {
				x[i*p+j] += float32(weight * parts[q*p+j])
			}
		}
		for j := range p {
			x[i*p+j] += float32(0.1 * rng.Float64())
		}
		x[i*p+3] = 0
	}
	for i, v := range x {
		x[i] = min(v/4, 1) // images of [0,1] are fitted in their own unit
	}
	clear(x[4*p : 5*p])
	copy(x[9*p:10*p], x[8*p:9*p])
	return Matrix{x, p}
}

var mixedShape = []int{6, 5}

func newModel(t testing.TB, m Method, shape []int, seed uint64) Model {
	t.Helper()
	model, err := m.New(shape, seed)
	fatal.If(t, err)
	return model
}

// fit fits to the end and returns the objective after every iteration.
func fitAll(t testing.TB, m Model, images Images) (objectives []float64) {
	t.Helper()
	_, err := Fit(context.Background(), m, images, func(p Progress) error {
		objectives = append(objectives, p.Objective)
		return nil
	})
	fatal.If(t, err)
	return objectives
}

func encode(t testing.TB, m interface {
	Encode([]float32) ([]float32, error)
}, images []float32) []float32 {
	t.Helper()
	codes, err := m.Encode(images)
	fatal.If(t, err)
	return codes
}

// meanSquares returns the mean of (x - codes atoms - bias)^2 over the observed entries, computed by plain loops.
func meanSquares(x, codes, atoms, bias []float32, k, p int) float64 {
	var sum, count float64
	for i := range len(x) / p {
		for j := range p {
			if math.IsNaN(float64(x[i*p+j])) {
				continue
			}
			count++
			y := 0.0
			if bias != nil {
				y = float64(bias[j])
			}
			for q := range k {
				y += float64(codes[i*k+q]) * float64(atoms[q*p+j])
			}
			d := float64(x[i*p+j]) - y
			sum += d * d
		}
	}
	return sum / count
}

// fashion returns images of Fashion-MNIST. It skips the test if they are not available.
func fashion(t testing.TB, count int) Matrix {
	t.Helper()
	dir := os.Getenv("TESSERA_DATA")
	if dir == "" || testing.Short() {
		t.Skip("left out: -short is set, or TESSERA_DATA is not")
	}
	file, err := os.Open(filepath.Join(dir, "fashion-mnist", "t10k-images-idx3-ubyte.gz"))
	fatal.If(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	fatal.If(t, err)
	raw := make([]byte, 16+count*784)
	_, err = io.ReadFull(unzipped, raw)
	fatal.If(t, err)
	return Matrix{lists.Map(raw[16:], func(b byte) float32 { return float32(b) / 255 }), 784}
}

// generated loads a generated data set.
func generated(t testing.TB, s data.Source) *data.Set {
	t.Helper()
	set, err := s.Load(context.Background(), data.Dirs{}, data.Both)
	fatal.If(t, err)
	return set
}

func registered(t testing.TB, name string) Method {
	t.Helper()
	entry, ok := Registry.Lookup(name)
	if !ok {
		t.Fatalf("no baseline %q", name)
	}
	return entry.New()
}

// worst returns the largest difference between elements of two vectors.
func worst(a, b []float32) float64 {
	if len(a) != len(b) {
		panic(fmt.Sprint(len(a), " values against ", len(b)))
	}
	var w float64
	for i, v := range a {
		w = max(w, math.Abs(float64(v)-float64(b[i])))
	}
	return w
}

func squaredDistance(a, b []float32) float64 {
	var sum float64
	for i, x := range a {
		d := float64(x) - float64(b[i])
		sum += d * d
	}
	return sum
}

func norm(v []float64) float64 {
	var squares float64
	for _, x := range v {
		squares += x * x
	}
	return math.Sqrt(squares)
}
