package classical

import (
	"slices"

	"tessera/internal/engine/kernel"
)

// ConvexNMF factorises non-negative images with atoms that are weighted means of images: X = H W, W = A X with H, A >= 0 and
// rows of A with sum 1. It minimises the squared error. The rules are
//
//	A <- A * sqrt((H'X) X' / ((H'H W) X')),   W = A X,   H <- H * sqrt(X W' / (H W W'))
//
// For images of any sign, the rules of the paper split the n x n matrix XX' into its positive and its negative part. Here
// images are non-negative, so the negative part is 0 and the matrix is not computed. No iteration raises the error. The fit
// starts from k-means: the code of each image is 1.2 at its centre and 0.2 elsewhere, and A has the same proportions. Images
// that were not fitted are encoded by non-negative least squares.
//
// Source: C. Ding, T. Li, M. I. Jordan, Convex and semi-nonnegative matrix factorizations, IEEE Trans. Pattern Analysis and
// Machine Intelligence 32(1), 2010.
type ConvexNMF struct {
	Components int     `toml:"components" want:"> 0" doc:"atoms"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the error by less than this fraction of it"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"fits from different starts, the best of which is the result"`
}

func init() {
	Registry.Register("convex_nmf", "factorisation whose atoms are weighted means of samples", func() Method {
		return &ConvexNMF{Components: 100, Iterations: 200, Tolerance: 1e-4, Restarts: 1}
	})
}

func (s *ConvexNMF) Describe() Fitting {
	return Fitting{Name: "convex_nmf", Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance,
		Sizes: func(images, pixels int) error { return fitsClusters(s.Components, images, pixels) }}
}

func (s *ConvexNMF) New(shape []int, seed uint64) (Model, error) {
	return newFactorisation(s, shape, seed, "", func(m *factorisation) {
		m.carried = true
		rule := &convexRule{halsRule: halsRule{f: &m.factors}}
		m.first = func() error {
			m.codes, _ = m.clusterStart()
			rule.weights = slices.Clone(m.codes)
			rule.mix()
			return nil
		}
		m.rule = rule
	})
}

type convexRule struct {
	halsRule
	weights []float32 // A, k x n
}

func (r *convexRule) improve() float64 {
	f := r.f
	k := f.units
	targets, products := f.product(f.target), f.product(f.atoms)
	divisor := make([]float32, k*f.n)
	multiply(false, false, k, f.n, k, f.codesGram, products, divisor)
	rootQuotient(r.weights, targets, divisor)
	r.mix()
	f.atomsGram()
	f.pass(func(w *blockWork, from, to int) {
		f.correlate(w, from, to)
		rootScale(f.gram, w.a, to-from, f.codes[from:], f.n, to-from, k)
	})
	return f.squaredError()
}

// mix scales every row of the weights to sum 1, multiplies its codes by the inverse factor, and computes the atoms from the weights.
func (r *convexRule) mix() {
	f := r.f
	scaleRows(r.weights, f.n, f.codes, f.n, f.units, kernel.Float32().Sum)
	f.atoms = f.mixture(r.weights)
}

const weightsName = "weights" // tensor of A', n x k

func (r *convexRule) keep(k *Kept) { k.transposed(weightsName, &r.weights, r.f.units) }
