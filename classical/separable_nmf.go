package classical

import (
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// SeparableNMF factorises non-negative images, X = H W with H, W >= 0, from anchors that the successive projection algorithm
// finds: first the row or column with the largest norm, then the row or column that is farthest from the span of the first,
// and so on.
//
//	anchors = "pixels"   H is k columns of X: each part has a pixel that no other part has. W is the non-negative
//	                     least-squares solution for these codes, then H the solution for these atoms
//	anchors = "images"   W is k images: each part is seen alone in one image. H is the non-negative least-squares solution
//
// With normalised = true rows or columns are divided by their sums first, as the theory requires if their scales differ; in
// noisy data this may select dark rows or columns. Components beyond the rank of X are 0. The fit is one iteration without
// randomness. The objective is the mean squared error. Atoms have norm 1 with anchors = "pixels".
//
// Sources: M. C. U. Araujo et al., The successive projections algorithm for variable selection in spectroscopic multicomponent
// analysis, Chemometrics and Intelligent Laboratory Systems 57(2), 2001; N. Gillis, S. A. Vavasis, Fast and robust recursive
// algorithms for separable nonnegative matrix factorization, IEEE Trans. Pattern Analysis and Machine Intelligence 36(4),
// 2014.
type SeparableNMF struct {
	Components int    `toml:"components" want:"> 0" doc:"atoms"`
	Anchors    string `toml:"anchors" oneof:"pixels images" doc:"anchors: pixels that belong to a single part, or images that show a single part"`
	Normalised bool   `toml:"normalised" doc:"choose among columns or rows divided by their sums"`
}

func init() {
	Registry.Register("separable_nmf", "factorisation by anchors, found by successive projection", func() Method {
		return &SeparableNMF{Components: 100, Anchors: "pixels", Normalised: true}
	})
}

func (s *SeparableNMF) Describe() Fitting {
	return Fitting{Name: "separable_nmf", Units: s.Components, Iterations: 1, Dense: true,
		Sizes: s.sizes}
}

// sizes returns an error for settings that are invalid for the numbers of images and pixels.
func (s *SeparableNMF) sizes(images, pixels int) error {
	if err := fewerThanImagesAndPixels(s.Components, images, pixels, ""); err != nil {
		return err
	}
	return fitsFactors(s.Components, "random", images, pixels)
}

// Check returns an error for unknown settings.
func (s *SeparableNMF) Check() error {
	if s.Anchors != "pixels" && s.Anchors != "images" {
		return unknown("anchors", s.Anchors, "pixels", "images")
	}
	return nil
}

// New implements [Method]. It does not use the seed.
func (s *SeparableNMF) New(shape []int, _ uint64) (Model, error) {
	return newFactorisation(s, shape, 0, "", func(m *factorisation) {
		m.dense = true
		m.carried = s.Anchors == "images"
		rule := &separableRule{halsRule{f: &m.factors}, *s}
		m.first = func() error {
			rule.choose()
			return nil
		}
		m.rule = rule
	})
}

type separableRule struct {
	halsRule
	settings SeparableNMF
}

// choose finds the anchors: the initial codes, or the atoms.
func (r *separableRule) choose() {
	f := r.f
	k, n, p := f.units, f.n, f.pixels
	f.atoms, f.codes = make([]float32, k*p), make([]float32, k*n)
	points, count, size, anchors := f.x, n, p, f.atoms
	if r.settings.Anchors == "pixels" {
		points, count, size, anchors = transpose(f.x, n, p), p, n, f.codes
	}
	for j, i := range successiveProjection(points, count, size, k, r.settings.Normalised) {
		copy(anchors[j*size:(j+1)*size], points[i*size:(i+1)*size])
	}
}

func (r *separableRule) improve() float64 {
	f := r.f
	if r.settings.Anchors == "pixels" {
		solveNonNegative(f.codesGram, f.units, f.target, f.atoms, f.pixels, encodePrecision)
		f.unitAtoms()
	}
	f.codes = transpose(r.encode(f.x), f.n, f.units)
	return r.prepare()
}

// successiveProjection returns the indices of k of the points (count non-negative rows of the given size): repeatedly the
// point that is farthest from the span of the selected ones, the first of equals. It returns fewer if all remaining points
// are in this span.
func successiveProjection(points []float32, count, size, k int, normalised bool) (chosen []int) {
	ops := kernel.Float32()
	point := func(i int) []float32 { return points[i*size : (i+1)*size] }
	scales, left, whole := make([]float64, count), make([]float64, count), make([]float64, count)
	for i := range count {
		scales[i] = 1
		if total := float64(ops.Sum(point(i))); normalised && total > 0 {
			scales[i] = 1 / total
		}
		whole[i] = vectors.Dot(point(i), point(i)) * scales[i] * scales[i]
		left[i] = whole[i]
	}
	var basis [][]float64
	for len(chosen) < k {
		far := 0
		for i := range count {
			if left[i] > left[far] {
				far = i
			}
		}
		if !(left[far] > 1e-6*whole[far]) {
			break
		}
		direction := orthonormal(point(far), basis)
		basis, chosen = append(basis, direction), append(chosen, far)
		team.For(count, fit.BlockSize, func(from, to int) {
			for i := from; i < to; i++ {
				product := 0.0
				for j, v := range point(i) {
					product += float64(v) * direction[j]
				}
				left[i] = max(left[i]-product*product*scales[i]*scales[i], 0)
			}
		})
		left[far] = 0
	}
	return chosen
}

// orthonormal returns the component of the point that is orthogonal to the basis, with norm 1. It projects twice because of
// rounding.
func orthonormal(point []float32, basis [][]float64) []float64 {
	v := vectors.Wide(point)
	ops := kernel.Float64()
	for range 2 {
		for _, b := range basis {
			ops.AddScaled(v, v, b, -ops.Dot(v, b))
		}
	}
	ops.DivScalar(v, v, max(math.Sqrt(ops.SumSquares(v)), math.SmallestNonzeroFloat64))
	return v
}
