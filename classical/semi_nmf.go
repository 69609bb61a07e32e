package classical

import (
	"cmp"
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
)

// SemiNMF factorises any images, X = H W with H >= 0 and atoms of any sign. It minimises the squared error. In each iteration
// the atoms become the least-squares solution and the codes take one multiplicative step, where [.]+ and [.]- are the
// positive and the negative part:
//
//	W = (H'H)^-1 H'X,   H <- H * sqrt(([XW']+ + H [WW']-) / ([XW']- + H [WW']+))
//
// No iteration raises the error. Atoms are scaled to norm 1. The fit starts from k-means: the code of each image is 1.2 at
// its centre and 0.2 elsewhere. Images that were not fitted are encoded by non-negative least squares.
//
// Source: C. Ding, T. Li, M. I. Jordan, Convex and semi-nonnegative matrix factorizations, IEEE Trans. Pattern Analysis and
// Machine Intelligence 32(1), 2010.
type SemiNMF struct {
	Components int     `toml:"components" want:"> 0" doc:"atoms"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the error by less than this fraction of it"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"fits from different starts, the best of which is the result"`
}

func init() {
	Registry.Register("semi_nmf", "factorisation with non-negative codes and atoms of any sign", func() Method {
		return &SemiNMF{Components: 100, Iterations: 200, Tolerance: 1e-4, Restarts: 1}
	})
}

func (s *SemiNMF) Describe() Fitting {
	return Fitting{Name: "semi_nmf", Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance, Signed: true,
		Sizes: func(images, pixels int) error { return fitsClusters(s.Components, images, pixels) }}
}

func (s *SemiNMF) New(shape []int, seed uint64) (Model, error) {
	return newFactorisation(s, shape, seed, "", func(m *factorisation) {
		m.first = func() error {
			m.codes, m.atoms = m.clusterStart()
			return nil
		}
		m.rule = &semiRule{halsRule{f: &m.factors}}
	})
}

// fitsClusters returns an error for a number of components for which a start by k-means is impossible.
func fitsClusters(components, images, pixels int) error {
	return cmp.Or(atMostImages(components, images), fitsFactors(components, "random", images, pixels))
}

// clusterStart runs a short k-means. It returns codes (k x n) that are 1.2 at an image's centre and 0.2 elsewhere, and the
// centres (k x p).
func (f *factors) clusterStart() (codes, centres []float32) {
	const rounds = 20
	n, k := f.n, f.units
	m := &kmeans{Base: Base{units: k, seed: f.seed}, KMeans: fit.NewKMeans(f.rows(), nil)}
	m.seedCentres()
	m.Assign()
	for range rounds {
		m.Move()
		m.Assign()
	}
	codes = make([]float32, k*n)
	for i := range codes {
		codes[i] = 0.2
	}
	for i, c := range m.Nearest {
		codes[int(c)*n+i] += 1
	}
	return codes, m.atoms
}

type semiRule struct{ halsRule }

func (r *semiRule) improve() float64 {
	f := r.f
	k := f.units
	solveAtoms(f.codesGram, f.target, f.atoms, k, f.pixels)
	f.unitAtoms()
	f.atomsGram()
	positive, negative := signParts(f.gram)
	f.pass(func(w *blockWork, from, to int) {
		b := to - from
		f.correlate(w, from, to)
		h, over, under := f.codes[from:], w.b[:k*b], make([]float32, k*b)
		kernel.Float32().Gemm(false, false, k, b, k, 1, negative, k, h, f.n, 0, over, b)
		kernel.Float32().Gemm(false, false, k, b, k, 1, positive, k, h, f.n, 0, under, b)
		for j := range k {
			for i := range b {
				a := w.a[j*b+i]
				up, down := float64(over[j*b+i]+max(a, 0)), float64(under[j*b+i]+max(-a, 0))
				h[j*f.n+i] *= float32(math.Sqrt(up / (down + tiny)))
			}
		}
	})
	return f.squaredError()
}

// signParts returns the positive part of a matrix and the magnitude of its negative part.
func signParts(a []float32) (positive, negative []float32) {
	positive, negative = make([]float32, len(a)), make([]float32, len(a))
	for i, v := range a {
		positive[i], negative[i] = max(v, 0), max(-v, 0)
	}
	return positive, negative
}

// solveAtoms writes G^-1 T into the atoms (k x p), for the positive semi-definite G (k x k), by Cholesky's decomposition in
// float64. Atoms that depend on earlier ones, with a pivot near 0, become 0.
func solveAtoms(gram, target, atoms []float32, k, p int) {
	l, used := cholesky(gram, k)
	team.For(p, 64, func(from, to int) {
		y := make([]float64, k)
		for c := from; c < to; c++ {
			for j := range k {
				sum := float64(target[j*p+c])
				for q := range j {
					sum -= l[j*k+q] * y[q]
				}
				y[j] = 0
				if used[j] {
					y[j] = sum / l[j*k+j]
				}
			}
			for j := k - 1; j >= 0; j-- {
				sum := y[j]
				for q := j + 1; q < k; q++ {
					sum -= l[q*k+j] * y[q]
				}
				y[j] = 0
				if used[j] {
					y[j] = sum / l[j*k+j]
				}
				atoms[j*p+c] = float32(y[j])
			}
		}
	})
}

// cholesky returns the lower triangle L with L L' = G, and reports which pivots are large enough to be used. The columns of
// other pivots are 0.
func cholesky(gram []float32, k int) (l []float64, used []bool) {
	l, used = make([]float64, k*k), make([]bool, k)
	for j := range k {
		pivot := float64(gram[j*k+j])
		least := 1e-6 * pivot
		for q := range j {
			pivot -= l[j*k+q] * l[j*k+q]
		}
		if used[j] = pivot > least; !used[j] {
			continue
		}
		l[j*k+j] = math.Sqrt(pivot)
		for i := j + 1; i < k; i++ {
			sum := float64(gram[i*k+j])
			for q := range j {
				sum -= l[i*k+q] * l[j*k+q]
			}
			l[i*k+j] = sum / l[j*k+j]
		}
	}
	return l, used
}
