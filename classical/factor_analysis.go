package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// FactorAnalysis is the model
//
//	x = m + W'z + e,  z ~ N(0, I),  e ~ N(0, diag(s))
//
// of images x with k hidden factors z. It is fitted by expectation maximisation, starting from the principal components.
// Atoms are the rows of W; the code of an image is the mean of its factors given the image. With equal = true all noise
// variances are equal: this is probabilistic PCA, whose atoms span the space of the principal components.
//
// Atoms are determined up to a rotation. A noise variance is at least floor times the mean variance of the pixels; this minimum
// is the noise variance of constant pixels.
//
// Sources: D. Rubin, D. Thayer, EM algorithms for ML factor analysis, Psychometrika 47(1), 1982; M. Tipping, C. Bishop, Probabilistic
// principal component analysis, JRSS B 61(3), 1999.
type FactorAnalysis struct {
	Components int     `toml:"components" want:"> 0" doc:"factors"`
	Equal      bool    `toml:"equal" doc:"one noise variance for all pixels: probabilistic PCA"`
	Floor      float64 `toml:"floor" want:"in (0,1]" doc:"least noise variance, as a share of the mean variance of the pixels"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration raises the log-likelihood of a sample by less than this, in nats"`
}

func init() {
	Registry.Register("factor_analysis", "factor analysis or probabilistic PCA, fitted by expectation maximisation",
		func() Method {
			return &FactorAnalysis{Components: 100, Floor: 1e-6, Iterations: 200, Tolerance: 1e-2}
		})
}

func (s *FactorAnalysis) Describe() Fitting {
	return Fitting{Name: "factor_analysis", Measures: measuresOfDensities, Units: s.Components, Iterations: s.Iterations, Signed: true,
		Sizes: func(images, pixels int) error { return fewerThanImagesAndPixels(s.Components, images, pixels, "") }}
}

// New implements [Method]. It does not use the seed.
func (s *FactorAnalysis) New(shape []int, _ uint64) (Model, error) {
	return NewModel(s, shape, 0, func(b Base) Algorithm {
		h := &latent{settings: *s, k: b.units, d: b.pixels, loadings: make([]float64, b.units*b.pixels), noise: make([]float64, b.pixels),
			least: make([]float64, 1)}
		return &em{Base: b, hidden: h, least: s.Tolerance}
	})
}

// latent is the hidden model of a factor analysis. With a = W diag(1/s), M = I + a W' and B = M^-1 a, the factors of a row x
// have mean Bx and covariance M^-1.
type latent struct {
	settings FactorAnalysis
	k, d     int

	loadings []float64 // W, k x d
	noise    []float64 // s, one value per pixel
	least    []float64 // one value: the minimum noise variance

	inferred   []float64 // B, k x d
	covariance []float64 // M^-1, k x k
	constant   float64   // constant term of the log density
}

// start implements hidden: the atoms start as the principal components, the noise as the remaining variance of each pixel.
func (f *latent) start(m *em, images Images) error {
	fitted, err := (&PCA{Components: f.k}).New(m.shape, 0)
	if err != nil {
		return err
	}
	p := fitted.(*pca)
	if _, err := Fit(context.Background(), p, images, nil); err != nil {
		return err
	}
	variances := make([]float64, f.d)
	m.x.Each(0, m.n, func(_ int, row []float32) {
		for j, v := range row {
			v := float64(v) - m.origin[j]
			variances[j] += v * v / float64(m.n)
		}
	})
	mean := 0.0
	for _, v := range variances {
		mean += v / float64(f.d)
	}
	f.least[0] = max(f.settings.Floor*mean, leastVariance)
	explained := 0.0
	for _, v := range p.variances {
		explained += float64(v)
	}
	left := max((mean*float64(f.d)-explained)/float64(max(f.d-f.k, 1)), f.least[0]) // the variance in every other direction
	copy(f.noise, variances)
	for q, v := range p.variances {
		scale := math.Sqrt(max(float64(v)-left, f.least[0]))
		for j := range f.d {
			w := scale * float64(p.atoms[q*f.d+j])
			f.loadings[q*f.d+j] = w
			f.noise[j] -= w * w
		}
	}
	f.bound()
	return nil
}

// bound sets all noise variances to their mean if equal is set, and raises smaller ones to the minimum.
func (f *latent) bound() {
	if f.settings.Equal {
		mean := 0.0
		for _, v := range f.noise {
			mean += v / float64(f.d)
		}
		for j := range f.noise {
			f.noise[j] = mean
		}
	}
	for j, v := range f.noise {
		if v < f.least[0] {
			f.noise[j] = f.least[0]
		}
	}
}

// size implements hidden: sums of z x', of z z' and of the squares of x.
func (f *latent) size() int { return f.k*f.d + f.k*f.k + f.d }

func (f *latent) prepare() error {
	k, d := f.k, f.d
	scaled := make([]float64, k*d)
	logDet := 0.0
	for j, v := range f.noise {
		if !(v > 0) {
			return fmt.Errorf("value %d: got the noise variance %v, want > 0", j, v)
		}
		logDet += math.Log(v)
		for q := range k {
			scaled[q*d+j] = f.loadings[q*d+j] / v
		}
	}
	precision := make([]float64, k*k)
	kernel.Float64().Gemm(false, true, k, k, d, 1, scaled, d, f.loadings, d, 0, precision, k)
	for q := range k {
		precision[q*k+q]++
	}
	var c mat.Cholesky
	if !c.Factorize(mat.NewSymDense(k, slices.Clone(precision))) {
		return errors.New("the covariance of the factors has no inverse")
	}
	f.covariance, f.inferred = make([]float64, k*k), make([]float64, k*d)
	inverse(&c, f.covariance, k)
	kernel.Float64().Gemm(false, false, k, d, k, 1, f.covariance, k, scaled, d, 0, f.inferred, d)
	f.constant = -(float64(d)*math.Log(2*math.Pi) + logDet + c.LogDet()) / 2
	return nil
}

func (f *latent) expect(sums, rows []float64, n int) (likelihood float64) {
	k, d := f.k, f.d
	z, densities := make([]float64, n*k), make([]float64, n)
	f.infer(z, densities, rows, n)
	likelihood = lists.Sum(densities)
	kernel.Float64().Gemm(true, false, k, d, n, 1, z, k, rows, d, 1, sums, d)
	kernel.Float64().Gemm(true, false, k, k, n, 1, z, k, z, k, 1, sums[k*d:], k)
	squares := sums[k*d+k*k:]
	for i := range n {
		for j, v := range rows[i*d : (i+1)*d] {
			squares[j] += v * v
		}
	}
	return likelihood
}

func (f *latent) infer(codes, densities, rows []float64, n int) {
	k, d := f.k, f.d
	if codes == nil {
		codes = make([]float64, n*k)
	}
	kernel.Float64().Gemm(false, true, n, k, d, 1, rows, d, f.inferred, d, 0, codes, k)
	if densities == nil {
		return
	}
	away := slices.Clone(rows) // x - W'z: the difference of x'x/s and z'Mz would lose the digits of a small noise
	kernel.Float64().Gemm(false, false, n, d, k, -1, codes, k, f.loadings, d, 1, away, d)
	for i := range n {
		square := kernel.Float64().SumSquares(codes[i*k : (i+1)*k])
		for j, v := range away[i*d : (i+1)*d] {
			square += v * v / f.noise[j]
		}
		densities[i] = f.constant - square/2
	}
}

// maximise implements hidden: W = (sum of E zz')^-1 sum of E z x', and the noise is the remaining variance.
func (f *latent) maximise(sums []float64, n int) {
	k, d := f.k, f.d
	zx, zz, squares := sums[:k*d], sums[k*d:k*d+k*k], sums[k*d+k*k:]
	second := slices.Clone(zz)
	for i, v := range f.covariance {
		second[i] += float64(n) * v
	}
	var c mat.Cholesky
	if !c.Factorize(mat.NewSymDense(k, second)) {
		return // the parameters are kept
	}
	solved := mat.NewDense(k, d, f.loadings)
	if err := c.SolveTo(solved, mat.NewDense(k, d, zx)); err != nil && !conditioned(err) {
		return // the parameters are kept
	}
	for j := range f.noise {
		left := squares[j]
		for q := range k {
			left -= f.loadings[q*d+j] * zx[q*d+j]
		}
		f.noise[j] = left / float64(n)
	}
	f.bound()
}

func (f *latent) notes() []string {
	count := 0
	for _, v := range f.noise {
		if v <= f.least[0] {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the noise of %d of %d values is held at the least variance, %.3g", count, f.d, f.least[0])}
}

// conditioned reports whether an error is only a warning of a large condition number.
func conditioned(err error) bool {
	var c mat.Condition
	return errors.As(err, &c)
}

func (f *latent) parameters() map[string][]float64 {
	return map[string][]float64{"loadings": f.loadings, "noise": f.noise, "least noise": f.least}
}

func (f *latent) atoms() ([]float64, bool) { return f.loadings, false }

func (f *latent) expression(p *ir.Module, x *ir.Value) *ir.Value {
	inferred := parameter(p, "inferred", []int{f.k, f.d}, vectors.Narrow(f.inferred))
	return &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{x, inferred}, Shape: []int{x.Shape[0], f.k}}
}

// freedom implements hidden: loadings up to rotations, the noise and the mean.
func (f *latent) freedom() int {
	noise := f.d
	if f.settings.Equal {
		noise = 1
	}
	return f.k*f.d - f.k*(f.k-1)/2 + noise + f.d
}

// sampler implements hidden: W'z plus noise, with standard normal z.
func (f *latent) sampler() func(row []float64, r *rand.Rand) {
	return func(row []float64, r *rand.Rand) {
		for j, v := range f.noise {
			row[j] = math.Sqrt(v) * r.NormFloat64()
		}
		for q := range f.k {
			kernel.Float64().AddScaled(row, row, f.loadings[q*f.d:(q+1)*f.d], r.NormFloat64())
		}
	}
}
