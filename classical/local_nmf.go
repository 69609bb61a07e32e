package classical

import (
	"errors"
	"math"

	"tessera/internal/engine/kernel"
)

// LocalNMF is local non-negative matrix factorisation. Its rules favour localised, expressive atoms with little overlap: with
// R = X / (H W),
//
//	W <- W * (H'R) / colsum(H)',  each atom divided by its sum,   H <- sqrt(H * (R W'))
//
// The rules minimise the Kullback-Leibler divergence plus a |WW'|_1 - b tr(H'H); the small weights a and b cancel in the
// rules. The square root changes the scale of the codes, so that H W does not approximate X. The codes of the model, for
// fitted and for other images, are therefore the best non-negative codes for its atoms. The reported objective is the
// divergence of X and H W. It may rise. A fit ends when its relative change is less than tolerance.
//
// Source: S. Z. Li, X. W. Hou, H. J. Zhang, Q. S. Cheng, Learning spatially localized, parts-based representation, CVPR 2001.
type LocalNMF struct {
	Components int     `toml:"components" want:"> 0" doc:"atoms"`
	Init       string  `toml:"init" oneof:"random nndsvda nndsvd" doc:"initialisation: random, or from singular vectors with zeros replaced by the mean (nndsvda) or kept (nndsvd)"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration changes the divergence by less than this fraction of it"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"with init = \"random\": fits from different starts, of which the best is kept"`
}

func init() {
	Registry.Register("local_nmf", "local non-negative matrix factorisation, whose atoms are small parts", func() Method {
		return &LocalNMF{Components: 100, Init: "random", Iterations: 500, Tolerance: 1e-5, Restarts: 1}
	})
}

func (s *LocalNMF) Describe() Fitting {
	return Fitting{Name: "local_nmf", Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance, Rises: true,
		Sizes: func(images, pixels int) error { return fitsFactors(s.Components, s.Init, images, pixels) }}
}

// Check returns an error for settings that exclude each other.
func (s *LocalNMF) Check() error {
	return errors.Join(checkInit(s.Init), checkRestarts(s.Restarts, s.Init))
}

func (s *LocalNMF) New(shape []int, seed uint64) (Model, error) {
	return newFactorisation(s, shape, seed, s.Init, func(m *factorisation) {
		m.recodes, m.degree = true, -1
		m.rule = &localRule{klRule{f: &m.factors, codesRule: rootKL}}
	})
}

type localRule struct{ klRule }

func (r *localRule) improve() float64 {
	f := r.f
	for j := range f.units {
		atom, target := f.atoms[j*f.pixels:(j+1)*f.pixels], f.target[j*f.pixels:(j+1)*f.pixels]
		kernel.Float32().Mul(atom, atom, target)
		if total := kernel.Float32().Sum(atom); total > 0 { // the divisor colsum(H) drops out
			kernel.Float32().DivScalar(atom, atom, total)
		}
	}
	return r.pass(true)
}

func (r *localRule) encode(images []float32) []float32 {
	return (&halsRule{f: r.f}).encode(images)
}

// rootKL replaces n columns of x (k x n, with row stride ldx) by sqrt(x * (W R')).
func rootKL(products, atomSums, x []float32, ldx, n int) {
	for j := range atomSums {
		row := x[j*ldx : j*ldx+n]
		for i, v := range row {
			row[i] = float32(math.Sqrt(float64(v) * float64(products[j*n+i])))
		}
	}
}
