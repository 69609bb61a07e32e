package classical

import (
	"errors"
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// OrthogonalNMF factorises non-negative images, X = H W with H, W >= 0. It minimises the squared error with one factor
// orthogonal:
//
//	orthogonal = "atoms"   W W' = I: non-negative and orthogonal atoms are disjoint parts
//	orthogonal = "codes"   H'H = I: every image has about one active unit, a soft k-means
//
// The rules are multiplicative. With T = H'X and M = T W',
//
//	atoms:   W <- W * sqrt(T / (M W)),        H <- H * (X W') / (H W W')
//	codes:   H <- H * sqrt(X W' / (H M)),     W <- W * T / (H'H W)
//
// The vectors of the orthogonal factor are scaled to norm 1 after every update. They gradually become nearly orthogonal, and
// the squared error, which is the reported objective, may rise meanwhile. A fit ends when its relative change is less than
// tolerance. Images that were not fitted are encoded by non-negative least squares.
//
// Source: C. Ding, T. Li, W. Peng, H. Park, Orthogonal nonnegative matrix tri-factorizations for clustering, KDD 2006.
type OrthogonalNMF struct {
	Components int     `toml:"components" want:"> 0" doc:"atoms"`
	Orthogonal string  `toml:"orthogonal" oneof:"atoms codes" doc:"the factor whose vectors become orthogonal"`
	Init       string  `toml:"init" oneof:"random nndsvda nndsvd" doc:"initialisation: random, or from singular vectors with zeros replaced by the mean (nndsvda) or kept (nndsvd)"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration changes the error by less than this fraction of it"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"with init = \"random\": fits from different starts, of which the best is kept"`
}

func init() {
	Registry.Register("orthogonal_nmf", "non-negative matrix factorisation with orthogonal atoms or codes", func() Method {
		return &OrthogonalNMF{Components: 100, Orthogonal: "atoms", Init: "random", Iterations: 500, Tolerance: 1e-5, Restarts: 1}
	})
}

func (s *OrthogonalNMF) Describe() Fitting {
	return Fitting{Name: "orthogonal_nmf", Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance, Rises: true,
		Sizes: func(images, pixels int) error { return fitsFactors(s.Components, s.Init, images, pixels) }}
}

// Check returns an error for settings that exclude each other.
func (s *OrthogonalNMF) Check() error {
	if s.Orthogonal != "atoms" && s.Orthogonal != "codes" {
		return unknown("orthogonal", s.Orthogonal, "atoms", "codes")
	}
	return errors.Join(checkInit(s.Init), checkRestarts(s.Restarts, s.Init))
}

func (s *OrthogonalNMF) New(shape []int, seed uint64) (Model, error) {
	return newFactorisation(s, shape, seed, s.Init, func(m *factorisation) {
		m.carried = s.Orthogonal == "codes"
		m.rule = &orthogonalRule{halsRule{f: &m.factors}, s.Orthogonal == "atoms"}
	})
}

type orthogonalRule struct {
	halsRule // provides the start, and the codes of images that were not fitted
	atoms    bool
}

func (r *orthogonalRule) improve() float64 {
	f := r.f
	k, p := f.units, f.pixels
	if r.atoms {
		rootScale(crossGram(f.target, f.atoms, k, p), f.target, p, f.atoms, p, p, k)
		f.unitAtoms()
	} else {
		f.scaleAtoms()
	}
	f.atomsGram()
	cross := crossGram(f.atoms, f.target, k, p) // M', of the codes before their update
	f.pass(func(w *blockWork, from, to int) {
		b := to - from
		f.correlate(w, from, to)
		if r.atoms {
			scale(f.gram, k, w.a, b, f.codes[from:], f.n, b, w.b)
		} else {
			rootScale(cross, w.a, b, f.codes[from:], f.n, b, k)
		}
	})
	if !r.atoms {
		scaleRows(f.codes, f.n, f.atoms, p, k, rowNorm)
		f.pass(nil)
		f.atomsGram()
	}
	return f.squaredError()
}

// crossGram returns A B' for matrices with k rows and p columns.
func crossGram(a, b []float32, k, p int) []float32 {
	product := make([]float32, k*k)
	kernel.Float32().Gemm(false, true, k, k, p, 1, a, p, b, p, 0, product, k)
	return product
}

// rootScale multiplies n columns of x (k x n, with row stride ldx) by sqrt(a / (Mx + tiny)); lda is the row stride of a.
func rootScale(m, a []float32, lda int, x []float32, ldx, n, k int) {
	const columns = 256
	team.For(n, columns, func(from, to int) {
		b := to - from
		divisor := make([]float32, k*b)
		kernel.Float32().Gemm(false, false, k, b, k, 1, m, k, x[from:], ldx, 0, divisor, b)
		for j := range k {
			row, over, under := x[j*ldx+from:j*ldx+to], a[j*lda+from:j*lda+to], divisor[j*b:(j+1)*b]
			rootQuotient(row, over, under)
		}
	})
}

// rootQuotient multiplies x by sqrt(a / (b + tiny)).
func rootQuotient(x, a, b []float32) {
	for i, v := range x {
		x[i] = v * float32(math.Sqrt(float64(max(a[i], 0))/(float64(max(b[i], 0))+tiny)))
	}
}
