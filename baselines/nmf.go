package baselines

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config"
	"tessera/kernel"
	"tessera/part"
)

// NMF factorises non-negative images, X = H W with H, W >= 0, under one of these losses L(X, HW), sums over images and pixels:
//
//	euclidean       1/2 |X - HW|^2                      the objective reported: the mean squared error
//	kl              X log(X / HW) - X + HW              the objective reported: its mean, as for those that follow
//	itakura_saito   X / HW - log(X / HW) - 1
//	beta            (X^b + (b-1) (HW)^b - b X (HW)^(b-1)) / (b (b-1)); 2, 1 and 0 are the limits above
//
// With penalties the fit minimises, for n images and p pixels,
//
//	L + p (l1_codes |H|_1 + l2_codes/2 |H|^2) + n (l1_atoms |W|_1 + l2_atoms/2 |W|^2)
//
// and reports that times 2/(n p) under the Euclidean loss, times 1/(n p) under the others. Without penalties atoms get norm 1
// under the Euclidean loss and sum 1 under the others: their scale is in the codes. With penalties no scale is free. Codes or
// atoms alone cannot be penalised: their scale would move to the other factor, at no cost.
//
// Solver hals is hierarchical alternating least squares, coordinate descent (euclidean only). One of its iterations takes two
// products with the images and four sweeps over the atoms, then four over the codes: about four iterations of
// coordinate descent that does one sweep for each product, as scikit-learn's. Solver mu is the multiplicative rules, one
// update of the atoms and one of the codes per iteration. Neither ever raises the objective. A fit ends when an iteration
// lowers it by less than tolerance times itself, or after the given number of iterations.
//
// With batch > 0 the images are read in shuffled mini-batches and never held in memory together; an iteration is one pass
// over them, and the codes of fitted images are not kept.
//
// Sources: D. D. Lee, H. S. Seung, Algorithms for non-negative matrix factorization, NIPS 2000; N. Gillis, F. Glineur,
// Accelerated multiplicative updates and hierarchical ALS algorithms for nonnegative matrix factorization, Neural
// Computation 24(4), 2012; for other exponents than 1 and 2, C. Fevotte, J. Idier, Algorithms for nonnegative matrix
// factorization with the beta-divergence, Neural Computation 23(9), 2011.
type NMF struct {
	Components   int     `toml:"components" want:"> 0" doc:"atoms"`
	Solver       string  `toml:"solver" oneof:"hals mu" doc:"hals: coordinate descent, four sweeps per iteration; mu: multiplicative rules"`
	Loss         string  `toml:"loss" oneof:"euclidean kl itakura_saito beta" doc:"objective that is minimised; all but euclidean need solver = \"mu\""`
	Beta         float64 `toml:"beta" doc:"with loss = \"beta\": the exponent of the divergence"`
	Floor        float64 `toml:"floor" want:"> 0" doc:"with exponents <= 0, as itakura_saito: smaller pixels count as this value, for 0 has no divergence"`
	L1Codes      float64 `toml:"l1_codes" want:">= 0" doc:"weight of the L1 norm of the codes"`
	L2Codes      float64 `toml:"l2_codes" want:">= 0" doc:"weight of half the squared norm of the codes"`
	L1Atoms      float64 `toml:"l1_atoms" want:">= 0" doc:"weight of the L1 norm of the atoms"`
	L2Atoms      float64 `toml:"l2_atoms" want:">= 0" doc:"weight of half the squared norm of the atoms"`
	Init         string  `toml:"init" oneof:"nndsvda nndsvd random" doc:"initialisation: from singular vectors with zeros replaced by the mean (nndsvda) or kept (nndsvd), or random"`
	Iterations   int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance    float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the objective by less than this fraction of it"`
	Restarts     int     `toml:"restarts" want:"> 0" doc:"with init = \"random\": fits from different starts, of which the best is kept"`
	Batch        int     `toml:"batch" want:">= 0" doc:"mini-batch size; 0 takes the full batch"`
	ForgetFactor float64 `toml:"forget_factor" want:"in (0,1]" doc:"with batch > 0: decay of the weight of earlier passes, per pass"`
}

func init() {
	config.Baselines.Register("nmf", "non-negative matrix factorisation, X = H W with H, W >= 0", func() config.Baseline {
		return &NMF{Components: 100, Solver: "hals", Loss: "euclidean", Beta: 1.5, Floor: 1.0 / 255, Init: "nndsvda",
			Iterations: 200, Tolerance: 1e-4, Restarts: 1, ForgetFactor: 0.7}
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
	losses := []string{"euclidean", "kl", "itakura_saito", "beta"}
	switch {
	case s.Solver != "hals" && s.Solver != "mu":
		return unknown("solver", s.Solver, "hals", "mu")
	case !slices.Contains(losses, s.Loss):
		return unknown("loss", s.Loss, losses...)
	case s.Loss != "euclidean" && s.Solver != "mu":
		return part.KeyErrorf("loss", `got %q, which solver = %q cannot minimise: want solver = "mu"`, s.Loss, s.Solver)
	case s.Loss == "beta" && !finite(s.Beta):
		return part.KeyErrorf("beta", "got %v, want a finite number", s.Beta)
	case s.exponent() <= 0 && !(s.Floor > 0):
		return part.KeyErrorf("floor", "got %v, want > 0", s.Floor)
	case s.Batch > 0 && s.Solver != "hals":
		return part.KeyErrorf("batch", `got %d, but mini-batches want solver = "hals"`, s.Batch)
	case s.Batch > 0 && s.Restarts > 1:
		return part.KeyErrorf("restarts", "got %d, but mini-batches are fitted once: want 1, or batch = 0", s.Restarts)
	}
	return errors.Join(s.checkPenalties(), checkInit(s.Init), checkRestarts(s.Restarts, s.Init))
}

// checkPenalties refuses penalties that the scale of the factors would take the effect from.
func (s *NMF) checkPenalties() error {
	codes, atoms := s.L1Codes+s.L2Codes, s.L1Atoms+s.L2Atoms
	switch {
	case codes > 0 && !(atoms > 0):
		return part.KeyError{Key: "l1_atoms", Problem: "got no penalty on the atoms, to which codes with a penalty would move their scale: want l1_atoms or l2_atoms > 0"}
	case atoms > 0 && !(codes > 0):
		return part.KeyError{Key: "l1_codes", Problem: "got no penalty on the codes, to which atoms with a penalty would move their scale: want l1_codes or l2_codes > 0"}
	case atoms > 0 && s.Batch > 0:
		return part.KeyErrorf("batch", "got %d, but mini-batches have no penalties: want 0", s.Batch)
	}
	return nil
}

// exponent is beta of the loss as a beta-divergence.
func (s *NMF) exponent() float64 {
	switch s.Loss {
	case "euclidean":
		return 2
	case "kl":
		return 1
	case "itakura_saito":
		return 0
	}
	return s.Beta
}

// MostIterations implements [Method].
func (s *NMF) MostIterations() int { return mostIterations(s.Iterations, s.Restarts) }

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
		return &online{factors: factors{coder: c, fits: s.Fits}, method: &onlineNMF{*s, c.pixels, seed}, seed: seed,
			schedule: schedule{"nmf", s.Batch, s.ForgetFactor, s.Iterations, s.Tolerance}}, nil
	}
	return newRestarted(s.Restarts, seed, func(seed uint64) (Model, error) { return s.model(c, seed), nil })
}

// model returns a model of a single fit.
func (s *NMF) model(c coder, seed uint64) Model {
	m := newFactorisation("nmf", c, s.Fits, s.Iterations, s.Tolerance)
	m.first = func() (err error) {
		m.atoms, m.codes, err = start(s.Init, m.x, m.n, m.pixels, m.units, seed)
		return err
	}
	penalties := s.penalties()
	switch {
	case s.Solver == "hals":
		m.rule = &halsRule{f: &m.factors, penalties: penalties}
	case s.exponent() == 2 && penalties == none:
		m.rule = &multiplicativeRule{&m.factors}
	case s.exponent() == 1 && penalties == none:
		m.rule = &klRule{f: &m.factors}
	default:
		m.rule = &betaRule{f: &m.factors, exponent: s.exponent(), penalties: penalties}
		if s.exponent() <= 0 {
			m.floor = float32(s.Floor)
		}
	}
	return m
}

// onlineNMF is the factorisation of mini-batches.
type onlineNMF struct {
	settings NMF
	pixels   int
	seed     uint64
}

func (o *onlineNMF) sample(images int) int { return o.settings.sample(images) }

func (o *onlineNMF) first(sample []float32, n int) ([]float32, error) {
	atoms, _, err := start(o.settings.Init, sample, n, o.pixels, o.settings.Components, o.seed)
	return atoms, err
}

func (o *onlineNMF) encode(images, atoms []float32, precision float64) []float32 {
	return encodeSquared(images, atoms, o.settings.Components, o.pixels, precision)
}

func (o *onlineNMF) penalty([]float32) float64 { return 0 }

// improve sweeps over the atoms and gives them norm 1; the sums over codes become those of codes with the other scale.
func (o *onlineNMF) improve(f *factors) {
	f.sweepAtoms(sweeps, f.codesGram, f.target)
	ops, k, p := kernel.Float32(), f.units, f.pixels
	for j := range k {
		atom, target, gram := f.atoms[j*p:(j+1)*p], f.target[j*p:(j+1)*p], f.codesGram[j*k:(j+1)*k]
		norm := float32(math.Sqrt(float64(ops.SumSquares(atom))))
		if !(norm > 0) {
			continue
		}
		ops.DivScalar(atom, atom, norm)
		ops.MulScalar(target, target, norm)
		ops.MulScalar(gram, gram, norm)
		for i := range k {
			f.codesGram[i*k+j] *= norm
		}
	}
}

// penalties are the weights on the factors, as the rules take them.
type penalties struct{ l1Codes, l2Codes, l1Atoms, l2Atoms float64 }

var none penalties

func (s *NMF) penalties() penalties { return penalties{s.L1Codes, s.L2Codes, s.L1Atoms, s.L2Atoms} }

// value is the penalties' share of the objective, divided by the number of images and of pixels.
func (w penalties) value(f *factors) float64 {
	if w == none {
		return 0
	}
	of := func(values []float32, l1, l2 float64) float64 {
		var sum, squares float64
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		return l1*sum + l2/2*squares
	}
	return of(f.codes, w.l1Codes, w.l2Codes)/float64(f.n) + of(f.atoms, w.l1Atoms, w.l2Atoms)/float64(f.pixels)
}
