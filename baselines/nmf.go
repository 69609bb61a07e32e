package baselines

import (
	"fmt"

	"tessera/config"
	"tessera/part"
)

// NMF factorises non-negative images, X = H W with H, W >= 0, under one of two losses:
//
//	euclidean   1/2 |X - HW|^2                       the objective reported: the mean squared error
//	kl          sum X log(X / HW) - X + HW           the objective reported: its mean over images and pixels
//
// Solver hals is hierarchical alternating least squares, coordinate descent with several sweeps per product with the
// images (euclidean only); mu is Lee and Seung's multiplicative rules. Neither ever raises the objective. The fit ends
// when an iteration lowers it by less than tolerance times itself, or after the given number of iterations. Atoms get norm 1 under the
// Euclidean loss and sum 1 under the other: their scale is in the codes.
//
// With batch > 0 the images are read in shuffled mini-batches and never held in memory together; an iteration is one pass
// over them, and the codes of fitted images are not kept (see nmfBatches).
//
// Sources: D. D. Lee, H. S. Seung, Algorithms for non-negative matrix factorization, NIPS 2000; N. Gillis, F. Glineur,
// Accelerated multiplicative updates and hierarchical ALS algorithms for nonnegative matrix factorization, Neural
// Computation 24(4), 2012.
type NMF struct {
	Components   int     `toml:"components" want:"> 0" doc:"atoms"`
	Solver       string  `toml:"solver" oneof:"hals mu" doc:"hals: coordinate descent; mu: multiplicative rules"`
	Loss         string  `toml:"loss" oneof:"euclidean kl" doc:"objective that is minimised; kl needs solver = \"mu\""`
	Init         string  `toml:"init" oneof:"nndsvda nndsvd random" doc:"initialisation: from singular vectors with zeros replaced by the mean (nndsvda) or kept (nndsvd), or random"`
	Iterations   int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations"`
	Tolerance    float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the objective by less than this fraction of it"`
	Batch        int     `toml:"batch" want:">= 0" doc:"mini-batch size; 0 takes the full batch"`
	ForgetFactor float64 `toml:"forget_factor" want:"in (0,1]" doc:"with batch > 0: decay of the weight of earlier passes, per pass"`
}

func init() {
	config.Baselines.Register("nmf", "non-negative matrix factorisation, X = H W with H, W >= 0", func() config.Baseline {
		return &NMF{Components: 100, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 200, Tolerance: 1e-4,
			ForgetFactor: 0.7}
	})
}

// Units implements [config.Baseline].
func (s *NMF) Units() int { return s.Components }

// Fits implements [config.Fitted].
func (s *NMF) Fits(images, pixels int) error {
	if s.Batch > 0 && images > 0 {
		images = s.sample(images)
	}
	return fitsFactors(s.Components, s.Init, images, pixels)
}

// sample is the number of images that the start of a mini-batch fit reads: a few batches.
func (s *NMF) sample(images int) int {
	return min(images, max(s.Batch, 10*min(s.Components, images)))
}

// Check reports settings that exclude each other.
func (s *NMF) Check() error {
	switch {
	case s.Solver != "hals" && s.Solver != "mu":
		return unknown("solver", s.Solver, "hals", "mu")
	case s.Loss != "euclidean" && s.Loss != "kl":
		return unknown("loss", s.Loss, "euclidean", "kl")
	case s.Loss == "kl" && s.Solver != "mu":
		return part.KeyError{Key: "loss", Problem: fmt.Sprintf(`got "kl", which solver = %q cannot minimise: want solver = "mu"`, s.Solver)}
	case s.Batch > 0 && s.Solver != "hals":
		return part.KeyError{Key: "batch", Problem: fmt.Sprintf(`got %d, but mini-batches want solver = "hals"`, s.Batch)}
	}
	return checkInit(s.Init)
}

// MostIterations implements [Method].
func (s *NMF) MostIterations() int { return s.Iterations }

// Biased implements [Method].
func (s *NMF) Biased() bool { return false }

// New implements [Method].
func (s *NMF) New(shape []int, seed uint64) (Model, error) {
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("nmf: %w", err)
	}
	c, err := newCoder(shape, s)
	if err != nil {
		return nil, fmt.Errorf("nmf: %w", err)
	}
	if s.Batch > 0 {
		return &nmfBatches{factors: factors{coder: c}, settings: *s, seed: seed}, nil
	}
	m := &factorisation{factors: factors{coder: c, fits: s.Fits}, name: "nmf", iterations: s.Iterations, tolerance: s.Tolerance}
	m.first = func() (err error) {
		m.atoms, m.codes, err = start(s.Init, m.x, m.n, m.pixels, m.units, seed)
		return err
	}
	switch {
	case s.Loss == "kl":
		m.rule = &klRule{f: &m.factors}
	case s.Solver == "mu":
		m.rule = &multiplicativeRule{&m.factors}
	default:
		m.rule = &halsRule{&m.factors}
	}
	return m, nil
}
