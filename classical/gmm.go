package classical

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/vectors"
)

// GMM is a mixture of normal distributions,
//
//	p(x) = sum over k of w_k N(x; m_k, S_k)
//
// fitted by expectation maximisation. Atoms are the means m_k; the code of an image is its responsibilities, the probabilities
// of the components given the image.
//
// The likelihood has no maximum: a component at a single image, or at images in a plane, can have a variance of 0 and an
// infinite density. Therefore the variance of a component is at least floor times the mean variance of the pixels, in every
// direction: the M step takes the most likely covariance that satisfies this bound (eigenvalues below the floor are set to
// it), so the likelihood does not fall. A warning names the components that have reached the floor. The floor is relative: if
// the images are scaled, so is the fit.
//
// With one common spherical covariance that tends to 0, the fit is k-means.
//
// Sources: A. Dempster, N. Laird, D. Rubin, JRSS B 39(1), 1977; R. Hathaway, A constrained formulation of maximum-likelihood
// estimation for normal mixture distributions, Annals of Statistics 13(2), 1985.
type GMM struct {
	Components int     `toml:"components" want:"> 0" doc:"components of the mixture"`
	Covariance string  `toml:"covariance" oneof:"full diagonal spherical tied" doc:"of a component: any, without correlations, one variance, or one full covariance for all components"`
	Init       string  `toml:"init" oneof:"kmeans random" doc:"first components: the clusters of k-means, or the samples nearest to samples drawn at random"`
	Floor      float64 `toml:"floor" want:"in (0,1]" doc:"least variance in any direction, as a share of the mean variance of the pixels"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration raises the log-likelihood of a sample by less than this, in nats"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"fits from different random starts, the best of which is the result"`
}

func init() {
	Registry.Register("gmm", "mixture of normal distributions, fitted by expectation maximisation",
		func() Method {
			return &GMM{Components: 100, Covariance: diagonal, Init: "kmeans", Floor: 1e-4, Iterations: 100, Tolerance: 1e-3, Restarts: 1}
		})
}

// Values of [GMM.Covariance].
const (
	full      = "full"
	diagonal  = "diagonal"
	spherical = "spherical"
	tied      = "tied"
)

func (s *GMM) Describe() Fitting {
	return Fitting{Name: "gmm", Measures: measuresOfDensities, Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Signed: true,
		Sizes: s.sizes}
}

func (s *GMM) sizes(images, pixels int) error {
	if err := atMostImages(s.Components, images); err != nil {
		return err
	}
	switch s.Covariance {
	case full: // the sums of every lane and the parameters
		return Bounded(s.Components, "covariances", pixels, pixels)
	case tied:
		return errors.Join(Bounded(1, "covariance", pixels, pixels), Bounded(s.Components, "means", pixels))
	}
	return Bounded(s.Components, "variances", pixels)
}

func (s *GMM) New(shape []int, seed uint64) (Model, error) {
	return newMixture(s, shape, seed, s.Init, s.Tolerance, func(b Base) family {
		return newGaussian(s.Covariance, b.units, b.pixels, s.Floor)
	})
}

func newMixture(s Method, shape []int, seed uint64, init string, tolerance float64, of func(b Base) family) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm {
		h := &mixture{family: of(b), components: b.units, seed: b.Random("mixture").Uint64(), init: init, weights: make([]float64, b.units)}
		return &em{Base: b, hidden: h, least: tolerance}
	})
}

// gaussian is the family of the components. Its features are the values of a row, then their products: all products for full
// covariances, the squares for diagonal ones, the sum of the squares for spherical ones. With a tied covariance the quadratic
// term of a row is equal for all components, and replaces the products as a single feature.
type gaussian struct {
	covariance         string
	components, pixels int
	share              float64 // floor, as a fraction of the mean variance of the pixels

	centres    []float64 // components x pixels, minus the origin
	variances  []float64 // variances of each component: pixels x pixels, pixels, or 1 values; pixels x pixels once if tied
	floor      []float64 // minimum variance, one value
	scatter    []float64 // mean of the products of all rows; only for a tied covariance
	precisions []float64 // inverse of the covariance; only for a tied covariance
}

func newGaussian(covariance string, components, pixels int, share float64) *gaussian {
	g := &gaussian{covariance: covariance, components: components, pixels: pixels, share: share,
		centres: make([]float64, components*pixels), floor: make([]float64, 1)}
	if covariance != tied {
		g.variances = make([]float64, g.each()*components)
	} else {
		n := pixels * pixels
		g.variances, g.precisions, g.scatter = make([]float64, n), make([]float64, n), make([]float64, n)
	}
	return g
}

// each returns the number of values of one covariance.
func (g *gaussian) each() int {
	switch g.covariance {
	case spherical:
		return 1
	case diagonal:
		return g.pixels
	}
	return g.pixels * g.pixels
}

func (g *gaussian) begin(m *em) error {
	d := g.pixels
	total := 0.0
	var rows []float64
	for from := 0; from < m.n; from += fit.BlockSize {
		count := min(fit.BlockSize, m.n-from)
		rows = m.rows(rows, m.x, from, from+count)
		for _, v := range rows {
			total += v * v
		}
		if g.scatter != nil {
			kernel.Float64().Gemm(true, false, d, d, count, 1/float64(m.n), rows, d, rows, d, 1, g.scatter, d)
		}
	}
	mean := total / float64(m.n*d)
	g.floor[0] = max(g.share*mean, leastVariance)
	for i := range g.variances { // of components without images
		if each := g.each(); each != d*d || i%each%(d+1) == 0 {
			g.variances[i] = max(mean, g.floor[0])
		}
	}
	return nil
}

const (
	leastVariance = 1e-37  // smallest variance that a sum of two float32 numbers represents
	fewest        = 1e-100 // minimum weight of a component in images; a component with less is empty
)

func (g *gaussian) features() int {
	switch g.covariance {
	case full:
		return g.pixels + g.pixels*(g.pixels+1)/2
	case diagonal:
		return 2 * g.pixels
	}
	return g.pixels + 1
}

func (g *gaussian) expand(dst, rows []float64, n int) {
	d, f := g.pixels, g.features()
	var along []float64
	if g.covariance == tied {
		along = make([]float64, n*d)
		kernel.Float64().Gemm(false, false, n, d, d, 1, rows, d, g.precisions, d, 0, along, d)
	}
	for i := range n {
		x, t := rows[i*d:(i+1)*d], dst[i*f:(i+1)*f]
		copy(t, x)
		rest := t[d:]
		switch g.covariance {
		case full:
			for j, v := range x {
				kernel.Float64().MulScalar(rest[:d-j], x[j:], v)
				rest = rest[d-j:]
			}
		case diagonal:
			rest = rest[:len(x)]
			for j, v := range x {
				rest[j] = v * v
			}
		case spherical:
			rest[0] = kernel.Float64().SumSquares(x)
		case tied:
			rest[0] = kernel.Float64().Dot(x, along[i*d:(i+1)*d])
		}
	}
}

// natural implements family. With P the inverse of S, log N(x; m, S) is
//
//	-(d log 2 pi + log det S + m'Pm)/2 + (Pm)'x - x'Px/2
func (g *gaussian) natural(eta, constants []float64) error {
	d, f := g.pixels, g.features()
	var common mat.Cholesky
	if g.covariance == tied {
		if !common.Factorize(mat.NewSymDense(d, slices.Clone(g.variances))) {
			return errors.New("the covariance has no inverse")
		}
		inverse(&common, g.precisions, d)
	}
	for k := range constants {
		mean, e := g.centres[k*d:(k+1)*d], eta[k*f:(k+1)*f]
		along, rest := e[:d], e[d:]
		logDet := 0.0
		switch g.covariance {
		case full:
			var c mat.Cholesky
			if !c.Factorize(mat.NewSymDense(d, slices.Clone(g.variances[k*d*d:(k+1)*d*d]))) {
				return fmt.Errorf("the covariance of component %d has no inverse", k)
			}
			p := make([]float64, d*d)
			inverse(&c, p, d)
			times(along, p, mean)
			for j := range d {
				kernel.Float64().MulScalar(rest[:d-j], p[j*d+j:(j+1)*d], -1)
				rest[0] /= 2
				rest = rest[d-j:]
			}
			logDet = c.LogDet()
		case tied:
			times(along, g.precisions, mean)
			rest[0], logDet = -0.5, common.LogDet()
		case diagonal:
			for j, v := range g.variances[k*d : (k+1)*d] {
				if !(v > 0) {
					return fmt.Errorf("component %d, value %d: got the variance %v, want > 0", k, j, v)
				}
				along[j], rest[j] = mean[j]/v, -0.5/v
				logDet += math.Log(v)
			}
		case spherical:
			v := g.variances[k]
			if !(v > 0) {
				return fmt.Errorf("component %d: got the variance %v, want > 0", k, v)
			}
			kernel.Float64().MulScalar(along, mean, 1/v)
			rest[0], logDet = -0.5/v, float64(d)*math.Log(v)
		}
		constants[k] = -(float64(d)*math.Log(2*math.Pi) + logDet + kernel.Float64().Dot(mean, along)) / 2
	}
	return nil
}

// inverse writes the inverse of a factorised d x d matrix.
func inverse(c *mat.Cholesky, dst []float64, d int) {
	inverse := mat.NewSymDense(d, dst)
	_ = c.InverseTo(inverse) // its error warns of a large condition number
	for i := range d {
		for j := range i {
			dst[i*d+j] = dst[j*d+i]
		}
	}
}

// times computes y = A x for a square matrix.
func times(y, a, x []float64) {
	for i := range y {
		y[i] = kernel.Float64().Dot(a[i*len(x):(i+1)*len(x)], x)
	}
}

func (g *gaussian) maximise(counts, sums []float64) {
	d, f := g.pixels, g.features()
	total := 0.0
	for k, count := range counts {
		if count < fewest {
			continue
		}
		total += count
		s, mean := sums[k*f:(k+1)*f], g.centres[k*d:(k+1)*d]
		kernel.Float64().MulScalar(mean, s[:d], 1/count)
		rest := s[d:]
		switch g.covariance {
		case full:
			v := g.variances[k*d*d : (k+1)*d*d]
			for i := range d {
				for j := i; j < d; j++ {
					v[i*d+j] = rest[j-i]/count - mean[i]*mean[j]
					v[j*d+i] = v[i*d+j]
				}
				rest = rest[d-i:]
			}
			atLeast(v, d, g.floor[0])
		case diagonal:
			for j := range d {
				v := rest[j]/count - mean[j]*mean[j]
				g.variances[k*d+j] = max(v, g.floor[0])
			}
		case spherical:
			v := (rest[0]/count - kernel.Float64().SumSquares(mean)) / float64(d)
			g.variances[k] = max(v, g.floor[0])
		}
	}
	if g.covariance == tied {
		copy(g.variances, g.scatter)
		for k, count := range counts {
			mean := g.centres[k*d : (k+1)*d]
			kernel.Float64().Gemm(true, false, d, d, 1, -count/total, mean, d, mean, d, 1, g.variances, d)
		}
		atLeast(g.variances, d, g.floor[0])
	}
}

func (g *gaussian) held() (components []int, by string) {
	d, each := g.pixels, g.each()
	for k := range len(g.variances) / each {
		v := g.variances[k*each : (k+1)*each]
		var least bool
		if g.covariance == full || g.covariance == tied {
			least = !above(v, d, g.floor[0]*(1+1e-6))
		} else {
			least = slices.Min(v) <= g.floor[0]
		}
		if least && g.covariance == tied {
			components = []int{-1}
		} else if least {
			components = append(components, k)
		}
	}
	return components, fmt.Sprintf("at the least variance, %.3g", g.floor[0])
}

// above reports whether all eigenvalues of a symmetric matrix exceed least.
func above(a []float64, d int, least float64) bool {
	var c mat.Cholesky
	less := mat.NewSymDense(d, slices.Clone(a))
	for i := range d {
		less.SetSym(i, i, a[i*d+i]-least)
	}
	return c.Factorize(less)
}

// atLeast raises the eigenvalues of a symmetric matrix to at least floor.
func atLeast(a []float64, d int, floor float64) {
	if above(a, d, floor) {
		return
	}
	raised, ok := raisedTo(a, d, floor)
	for i := range a {
		switch {
		case ok:
			a[i] = raised[min(i/d, i%d)*d+max(i/d, i%d)]
		case i%(d+1) == 0:
			a[i] += floor
		}
	}
}

// raisedTo returns the matrix a with eigenvalues raised to at least floor. ok is false if the eigenvalues cannot be computed:
// for some matrices of low rank the algorithm does not converge.
func raisedTo(a []float64, d int, floor float64) (raised []float64, ok bool) {
	values, v, err := eigen(slices.Clone(a), d)
	if err != nil {
		return nil, false
	}
	scaled, raised := slices.Clone(v), make([]float64, d*d)
	for i, value := range values {
		kernel.Float64().MulScalar(scaled[i*d:(i+1)*d], v[i*d:(i+1)*d], max(value, floor))
	}
	kernel.Float64().Gemm(true, false, d, d, d, 1, scaled, d, v, d, 0, raised, d)
	return raised, finite(kernel.Float64().Sum(raised))
}

// scores implements family: -|R_k (x - m_k)|^2/2 with R_k'R_k the inverse of S_k. In this form float32 is precise enough; the
// products of [gaussian.natural] need float64.
func (g *gaussian) scores(p *ir.Module, x *ir.Value) (*ir.Value, []float64) {
	d, k, batch := g.pixels, g.components, x.Shape[0]
	constants := make([]float64, k)
	roots, means := make([]float64, d*k*d), make([]float64, k*d) // of full covariances: columns c d to (c + 1) d belong to component c
	factors := make([]float64, k*d)                              // of others: 1 over the deviations
	var c mat.Cholesky
	for q := range k {
		if g.covariance == full || g.covariance == tied && q == 0 {
			c.Factorize(mat.NewSymDense(d, slices.Clone(g.variances[q*d*d:(q+1)*d*d])))
		}
		switch g.covariance {
		case full, tied:
			var lower, inverse mat.TriDense
			c.LTo(&lower)
			_ = inverse.InverseTri(&lower) // its error warns of a large condition number
			for i := range d {
				for j := range d {
					roots[j*k*d+q*d+i] = inverse.At(i, j)
					means[q*d+i] += inverse.At(i, j) * g.centres[q*d+j]
				}
			}
			constants[q] = -c.LogDet() / 2
		case diagonal, spherical:
			for j := range d {
				v := g.variances[q*g.each()+j%g.each()]
				factors[q*d+j] = 1 / math.Sqrt(v)
				constants[q] -= math.Log(v) / 2
			}
			copy(means[q*d:], g.centres[q*d:(q+1)*d])
		}
	}
	shape := []int{batch, k, d}
	var spread *ir.Value
	if g.covariance == full || g.covariance == tied {
		y := &ir.Value{Op: ir.Product{}, Args: []*ir.Value{x, parameter(p, "roots", []int{d, k * d}, vectors.Narrow(roots))}, Shape: []int{batch, k * d}}
		spread = ir.Point(ir.Sub, y.Shape, y, row(p, "means", vectors.Narrow(means)))
	} else {
		wide := ir.Reshaped(ir.Broadcasted(ir.Reshaped(x, []int{batch, 1, d}), shape), []int{batch, k * d})
		away := ir.Point(ir.Sub, wide.Shape, wide, row(p, "means", vectors.Narrow(means)))
		spread = ir.Point(ir.Mul, away.Shape, away, row(p, "deviations", vectors.Narrow(factors)))
	}
	squares := ir.Reshaped(ir.Point(ir.Square, spread.Shape, spread), shape)
	sum := ir.Reduce(ir.Sum, squares, []int{batch, k}, 2)
	return ir.Point(ir.Mul, sum.Shape, sum, ir.Uniform(-0.5, sum.Shape)), constants
}

func (g *gaussian) values() map[string][]float64 {
	values := map[string][]float64{"means": g.centres, "variances": g.variances, "least variance": g.floor}
	if g.scatter != nil {
		values["scatter"] = g.scatter
	}
	return values
}

func (g *gaussian) means() ([]float64, bool) { return g.centres, true }

func (g *gaussian) free() int {
	means, matrix := g.components*g.pixels, g.pixels*(g.pixels+1)/2
	switch g.covariance {
	case full:
		return means + g.components*matrix
	case tied:
		return means + matrix
	}
	return means + g.components*g.each()
}

// sampler implements family: m_k + L_k z with L_k L_k' = S_k and standard normal z.
func (g *gaussian) sampler() func(row []float64, component int, r *rand.Rand) {
	d, each := g.pixels, g.each()
	var lower []mat.TriDense
	if g.covariance == full || g.covariance == tied {
		lower = make([]mat.TriDense, len(g.variances)/each)
		for k := range lower {
			var c mat.Cholesky
			c.Factorize(mat.NewSymDense(d, slices.Clone(g.variances[k*each:(k+1)*each]))) // the parameters of a fitted model are sound
			c.LTo(&lower[k])
		}
	}
	return func(row []float64, component int, r *rand.Rand) {
		z := make([]float64, d)
		for j := range z {
			z[j] = r.NormFloat64()
		}
		for j, m := range g.centres[component*d : (component+1)*d] {
			switch g.covariance {
			case full, tied:
				for i := range j + 1 {
					m += lower[component%len(lower)].At(j, i) * z[i]
				}
			default:
				m += math.Sqrt(g.variances[component*each+j%each]) * z[j]
			}
			row[j] = m
		}
	}
}

// covarianceOf returns the covariance of a component, pixels x pixels.
func (g *gaussian) covarianceOf(component int) []float64 {
	d, each := g.pixels, g.each()
	v := g.variances[component*each%len(g.variances):][:each]
	if each == d*d && g.covariance != diagonal {
		return slices.Clone(v)
	}
	wide := make([]float64, d*d)
	for j := range d {
		wide[j*d+j] = v[j%each]
	}
	return wide
}
