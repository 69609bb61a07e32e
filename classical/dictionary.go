package classical

import (
	"tessera/config/part"
	"tessera/internal/engine/kernel"
)

// Dictionary is online dictionary learning: sparse codes H and atoms W of norm at most 1 that minimise the mean over images of
//
//	1/2 |x - h W|^2 + l1 |h|_1
//
// Images are read in shuffled mini-batches. The codes of a batch are found by coordinate descent with the atoms fixed, then
// the atoms are updated one after the other: each becomes its least-squares value for all batches so far, projected onto the
// unit ball. The weight of earlier contributions decays by the factor forget_factor per pass. With nonneg = true codes and
// atoms are non-negative. The first atoms are randomly drawn images, scaled to norm 1. An iteration is one pass over the
// images. The reported objective is the mean of (x - hW)^2 over pixels plus 2 l1 |h|_1 / pixels, where each batch is measured
// before it changes the atoms.
//
// Source: J. Mairal, F. Bach, J. Ponce, G. Sapiro, Online dictionary learning for sparse coding, ICML 2009.
type Dictionary struct {
	Components   int     `toml:"components" want:"> 0" doc:"atoms"`
	L1           float64 `toml:"l1" want:"> 0" doc:"weight of the L1 norm of a code"`
	NonNegative  bool    `toml:"nonneg" doc:"codes and atoms are non-negative"`
	Iterations   int     `toml:"iterations" want:"> 0" doc:"passes over the samples"`
	Tolerance    float64 `toml:"tolerance" want:">= 0" doc:"stop when a pass changes the objective by less than this fraction of it"`
	Batch        int     `toml:"batch" want:"> 0" doc:"mini-batch size"`
	ForgetFactor float64 `toml:"forget_factor" want:"in (0,1]" doc:"factor of the weight of earlier passes, per pass"`
}

func init() {
	Registry.Register("dictionary", "online dictionary learning: sparse codes, atoms of any sign or non-negative", func() Method {
		return &Dictionary{Components: 100, L1: 0.1, Iterations: 50, Tolerance: 1e-4, Batch: 256, ForgetFactor: 0.7}
	})
}

func (s *Dictionary) Describe() Fitting {
	return Fitting{Name: "dictionary", Units: s.Components, Iterations: s.Iterations, Tolerance: s.Tolerance, Signed: !s.NonNegative, Rises: true, Absolute: true,
		Sizes: func(images, pixels int) error { return fitsClusters(s.Components, images, pixels) }}
}

// Check returns an error for invalid settings of a struct literal in Go.
func (s *Dictionary) Check() error {
	switch {
	case !(s.L1 > 0):
		return part.KeyErrorf("l1", "got %v, want > 0", s.L1)
	case s.Batch < 1:
		return part.KeyErrorf("batch", "got %d, want > 0", s.Batch)
	}
	return nil
}

func (s *Dictionary) New(shape []int, seed uint64) (Model, error) {
	return newOnline(s, shape, seed, s.Batch, s.ForgetFactor, onlineDictionary{*s})
}

// onlineDictionary learns a dictionary from mini-batches.
type onlineDictionary struct{ settings Dictionary }

// first draws the first atoms: distinct images of the sample.
func (o onlineDictionary) first(f *factors, sample []float32, n int) error {
	f.atoms = make([]float32, f.units*f.pixels)
	for j, i := range f.Random("init/" + atomsName).Perm(n)[:f.units] {
		atom := f.atom(j)
		copy(atom, sample[i*f.pixels:])
		if norm := rowNorm(atom); norm > 0 {
			kernel.Float32().DivScalar(atom, atom, norm)
		}
	}
	return nil
}

func (o onlineDictionary) encode(f *factors, images []float32, precision float64) []float32 {
	if o.settings.NonNegative {
		return encodePenalised(images, f.atoms, f.units, f.pixels, o.settings.L1, 0, precision)
	}
	return encodeLasso(images, f.atoms, f.units, f.pixels, o.settings.L1, precision)
}

func (o onlineDictionary) penalty(codes []float32) float64 {
	var sum float64
	for _, h := range codes {
		sum += float64(max(h, -h))
	}
	return 2 * o.settings.L1 * sum
}

// improve sets one atom after the other to its least-squares value for A and B, projected onto the unit ball. An atom that no
// code has used does not change.
func (o onlineDictionary) improve(f *factors) {
	ops, k, p := kernel.Float32(), f.units, f.pixels
	rest := make([]float32, p)
	for j := range k {
		atom, diagonal := f.atoms[j*p:(j+1)*p], f.codesGram[j*k+j]
		if !(diagonal > 0) {
			continue
		}
		copy(rest, f.target[j*p:(j+1)*p])
		ops.Gemm(false, false, 1, p, k, -1, f.codesGram[j*k:], k, f.atoms, p, 1, rest, p)
		ops.AddScaled(atom, atom, rest, 1/diagonal)
		if o.settings.NonNegative {
			ops.MaxScalar(atom, atom, 0)
		}
		if norm := rowNorm(atom); norm > 1 {
			ops.DivScalar(atom, atom, norm)
		}
	}
}
