package classical

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

const (
	pcaIterations  = 100   // default number of iterations of expectation maximisation
	pcaTolerance   = 1e-4  // default tolerance, in nats per entry
	leastNoise     = 1e-9  // minimum noise variance, as a fraction of the mean variance of the entries
	leastDirection = 1e-12 // minimum variance of a component, as a fraction of the largest one
	imagesAtOnce   = 512
	valuesAtOnce   = 64 // number of values, or of images, per task
)

// ppca is probabilistic PCA for images with missing entries:
//
//	x = m + h s W + e,   h ~ N(0, I),   e ~ N(0, v I)
//
// with orthonormal atoms W and scales s. It maximises the likelihood of the observed entries by expectation maximisation.
// Without missing entries the maximum is the PCA. The noise variance v prevents large codes of images with few observed
// entries, which a least squares fit to these entries may have.
//
// The E step computes the posterior of h given the observed entries of an image, a normal distribution. The M step computes,
// for every pixel, the regression on h with an offset over the images in which the pixel is observed; then v. Then W and m are
// changed such that h has mean 0 and covariance I (parameter expansion), which speeds up convergence without changing the
// limit.
//
// Sources: M. Tipping, C. Bishop, Probabilistic principal component analysis, JRSS B 61(3), 1999; A. Ilin, T. Raiko, Practical
// approaches to principal component analysis in the presence of missing values, JMLR 11, 2010; C. Liu, D. Rubin, Y. Wu,
// Parameter expansion to accelerate EM: the PX-EM algorithm, Biometrika 85(4), 1998.
type ppca struct {
	m       *pca
	n, p, k int
	x       []float32 // images, with NaN for missing entries
	missing *missing
	origin  []float64 // mean of the observed entries of each pixel, which is subtracted
	floor   float64   // minimum noise variance

	w      []float64 // s W, transposed: p x k
	offset []float64 // m - origin
}

// newPPCA prepares a fit. It returns nil if no entries are missing.
func newPPCA(m *pca, images Images) (*ppca, error) {
	x := load(images)
	if err := m.accepts(x); err != nil {
		return nil, err
	}
	gone, err := missingOf(x, m.pixels)
	if gone == nil || err != nil {
		return nil, err
	}
	if err := Bounded(m.units, "products", (m.units+1)/2+1, m.pixels); err != nil {
		return nil, err
	}
	f := &ppca{m: m, n: images.Len(), p: m.pixels, k: m.units, x: x, missing: gone, origin: make([]float64, m.pixels)}
	counts := make([]float64, f.p)
	for i, v := range x {
		if v == v {
			f.origin[i%f.p] += float64(v)
			counts[i%f.p]++
		}
	}
	for j := range f.origin {
		f.origin[j] /= counts[j]
	}
	variance := 0.0
	for i, v := range x {
		if v == v {
			d := float64(v) - f.origin[i%f.p]
			variance += d * d
		}
	}
	f.floor = max(leastNoise*variance/float64(gone.observed), leastVariance)
	return f, nil
}

// start sets the initial parameters: the PCA of the images with missing entries replaced by the mean of their pixel.
func (f *ppca) start(ctx context.Context) error {
	m := f.m
	images := m.images
	m.images = Matrix{f.missing.filled(f.x, f.p), f.p}
	left, err := m.components(ctx)
	m.images = images
	if err != nil {
		return err
	}
	m.noise = f.floor
	if f.p > f.k {
		m.noise = max(f.floor, left*float64(f.p)/float64(f.p-f.k))
	}
	return nil
}

// unpack computes w and offset from the model's tensors, which are rounded to float32: a resumed fit has the same bits.
func (f *ppca) unpack() {
	m := f.m
	f.w, f.offset = make([]float64, f.p*f.k), make([]float64, f.p)
	scales := m.scales()
	for j := range f.p {
		f.offset[j] = float64(m.bias[j]) - f.origin[j]
		for q, s := range scales {
			f.w[j*f.k+q] = s * float64(m.atoms[q*f.p+j])
		}
	}
}

// step performs one iteration and returns minus the mean log-likelihood per entry for the previous parameters.
func (f *ppca) step(ctx context.Context) (float64, error) {
	if f.m.noise == 0 {
		if err := f.start(ctx); err != nil {
			return 0, err
		}
	}
	f.unpack()
	k, p, pairs, width := f.k, f.p, triangle(f.k), triangle(f.k+1)
	sums := make([]float64, p*width)    // of the moments of the images in which a value is known
	targets := make([]float64, p*(k+1)) // of the value times (h, 1)
	squares := make([]float64, p)
	all := make([]float64, width) // of the moments of all images
	products := outer(f.w, p, k)
	size := min(imagesAtOnce, f.n)
	mask, rows := make([]float64, size*p), make([]float64, size*p)
	grams, moments, codes := make([]float64, size*pairs), make([]float64, size*width), make([]float64, size*(k+1))
	bounds, failed := make([]float64, size), make([]error, size)
	likelihood := 0.0
	gemm := kernel.Float64().Gemm
	for from := 0; from < f.n; from += size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		count := min(size, f.n-from)
		team.For(count, valuesAtOnce, func(a, b int) {
			for i := a; i < b; i++ {
				for j, v := range f.x[(from+i)*p : (from+i+1)*p] {
					if mask[i*p+j], rows[i*p+j] = 0, 0; v == v {
						mask[i*p+j], rows[i*p+j] = 1, float64(v)-f.origin[j]
					}
				}
			}
			gemm(false, false, b-a, pairs, p, 1, mask[a*p:], p, products, pairs, 0, grams[a*pairs:], pairs)
			e := newPosterior(k)
			for i := a; i < b; i++ {
				if bounds[i], failed[i] = e.expect(f, grams[i*pairs:], mask[i*p:(i+1)*p], rows[i*p:(i+1)*p]); failed[i] == nil {
					e.moments(moments[i*width:], codes[i*(k+1):], f.m.noise)
				}
			}
		})
		if err := errors.Join(failed[:count]...); err != nil {
			return 0, err
		}
		likelihood += lists.Sum(bounds[:count])
		for i := range count {
			kernel.Float64().Add(all, all, moments[i*width:(i+1)*width])
		}
		team.For(p, valuesAtOnce, func(a, b int) {
			gemm(true, false, b-a, width, count, 1, mask[a:], p, moments, width, 1, sums[a*width:], width)
			gemm(true, false, b-a, k+1, count, 1, rows[a:], p, codes, k+1, 1, targets[a*(k+1):], k+1)
			for i := range count {
				for j := a; j < b; j++ {
					squares[j] += rows[i*p+j] * rows[i*p+j]
				}
			}
		})
	}
	return -likelihood / float64(f.missing.observed), f.maximise(sums, targets, squares, all)
}

// triangle returns the number of values of the upper triangle of a k x k matrix. Triangles are stored row by row.
func triangle(k int) int { return k * (k + 1) / 2 }

// outer returns, for each of n rows of k values, the products of all pairs of values as an upper triangle.
func outer(rows []float64, n, k int) []float64 {
	products := make([]float64, 0, n*triangle(k))
	for ; len(rows) > 0; rows = rows[k:] {
		for q := range k {
			for _, v := range rows[q:k] {
				products = append(products, rows[q]*v)
			}
		}
	}
	return products
}

// posterior solves the normal equations of one image or of one value.
type posterior struct {
	k      int
	matrix *mat.SymDense
	factor mat.Cholesky
	b, h   []float64
}

func newPosterior(k int) *posterior {
	return &posterior{k: k, matrix: mat.NewSymDense(k, nil), b: make([]float64, k), h: make([]float64, k)}
}

// solve sets h = (G + v I)^-1 b, for the upper triangle of G.
func (e *posterior) solve(gram []float64, v float64) error {
	for q := range e.k {
		for r := q; r < e.k; r++ {
			e.matrix.SetSym(q, r, gram[r-q])
		}
		e.matrix.SetSym(q, q, gram[0]+v)
		gram = gram[e.k-q:]
	}
	if !e.factor.Factorize(e.matrix) {
		return errors.New("the covariance of the codes has no inverse")
	}
	_ = e.factor.SolveVecTo(mat.NewVecDense(e.k, e.h), mat.NewVecDense(e.k, e.b)) // its error warns of a large condition number
	return nil
}

// expect computes the posterior mean h from G = W'W over the observed entries of an image. It returns the log density of
// these entries.
func (e *posterior) expect(f *ppca, gram, mask, row []float64) (float64, error) {
	clear(e.b)
	known, squares, noise := 0.0, 0.0, f.m.noise
	for j, there := range mask {
		if there != 0 {
			d := row[j] - f.offset[j]
			known++
			squares += d * d
			kernel.Float64().AddScaled(e.b, e.b, f.w[j*e.k:(j+1)*e.k], d)
		}
	}
	if err := e.solve(gram, noise); err != nil {
		return 0, err
	}
	quadratic := (squares - kernel.Float64().Dot(e.b, e.h)) / noise
	return -(known*math.Log(2*math.Pi) + (known-float64(e.k))*math.Log(noise) + e.factor.LogDet() + quadratic) / 2, nil
}

// moments writes the expected products of (h, 1), an upper triangle, and (h, 1) itself.
func (e *posterior) moments(dst, code []float64, noise float64) {
	inverse := e.matrix // which is not needed any more
	_ = e.factor.InverseTo(inverse)
	for q := range e.k {
		for r := q; r < e.k; r++ {
			dst[r-q] = noise*inverse.At(q, r) + e.h[q]*e.h[r]
		}
		dst[e.k-q] = e.h[q]
		dst = dst[e.k+1-q:]
	}
	dst[0] = 1
	copy(code, e.h)
	code[e.k] = 1
}

// maximise sets the parameters from the sums over images.
func (f *ppca) maximise(sums, targets, squares, all []float64) error {
	k, p, width := f.k, f.p, triangle(f.k+1)
	left := make([]float64, p) // squared errors
	team.For(p, valuesAtOnce, func(a, b int) {
		e := newPosterior(k + 1)
		for j := a; j < b; j++ {
			copy(e.b, targets[j*(k+1):])
			copy(e.h, f.w[j*k:(j+1)*k])
			e.h[k] = f.offset[j]
			second := sums[j*width : (j+1)*width]
			if e.solve(second, 0) == nil { // else the value keeps its weights
				copy(f.w[j*k:(j+1)*k], e.h)
				f.offset[j] = e.h[k]
			}
			left[j] = squares[j] - 2*kernel.Float64().Dot(e.h, e.b) + quadratic(second, e.h)
		}
	})
	f.m.noise = max(lists.Sum(left)/float64(f.missing.observed), f.floor)
	return f.settle(all)
}

// quadratic returns y'Ay for the upper triangle of A.
func quadratic(a, y []float64) (total float64) {
	for ; len(y) > 0; y = y[1:] {
		total += y[0] * (2*kernel.Float64().Dot(a[:len(y)], y) - a[0]*y[0])
		a = a[len(y):]
	}
	return total
}

// settle transforms the codes to mean 0 and covariance I, and then the atoms to principal components.
func (f *ppca) settle(all []float64) error {
	k, p, m := f.k, f.p, f.m
	kernel.Float64().MulScalar(all, all, 1/float64(f.n))
	mean, covariance := make([]float64, k), mat.NewSymDense(k, nil)
	for q, row := 0, all; q < k; q++ {
		mean[q] = row[k-q]
		row = row[k+1-q:]
	}
	for q, row := 0, all; q < k; q++ {
		for r := q; r < k; r++ {
			covariance.SetSym(q, r, row[r-q]-mean[q]*mean[r])
		}
		row = row[k+1-q:]
	}
	var c mat.Cholesky
	if c.Factorize(covariance) {
		var root mat.TriDense
		c.LTo(&root)
		moved := make([]float64, k)
		for j := range p {
			row := f.w[j*k : (j+1)*k]
			f.offset[j] += kernel.Float64().Dot(row, mean)
			clear(moved)
			for q, v := range row {
				for r := range q + 1 {
					moved[r] += v * root.At(q, r)
				}
			}
			copy(row, moved)
		}
	}
	gram := make([]float64, k*k)
	kernel.Float64().Gemm(true, false, k, k, p, 1, f.w, k, f.w, k, 0, gram, k)
	values, v, err := eigen(gram, k)
	if err != nil {
		return err
	}
	atoms, means := make([]float64, k*p), make([]float64, p)
	kernel.Float64().Gemm(false, true, k, p, k, 1, v, k, f.w, k, 0, atoms, p)
	m.variances = make([]float32, k)
	for q, value := range values {
		scale := 0.0
		if value > leastDirection*values[0] {
			scale = 1 / math.Sqrt(value)
		}
		kernel.Float64().MulScalar(atoms[q*p:(q+1)*p], atoms[q*p:(q+1)*p], scale)
		m.variances[q] = float32(value + m.noise)
	}
	flipSigns(atoms, k, p)
	for j := range means {
		means[j] = f.origin[j] + f.offset[j]
	}
	m.atoms, m.bias = vectors.Narrow(atoms), vectors.Narrow(means)
	return nil
}

// scales returns the standard deviations of the codes without the noise.
func (m *pca) scales() []float64 {
	scales, noise := make([]float64, m.units), m.noiseVariance()
	for q, v := range m.variances {
		scales[q] = math.Sqrt(max(float64(v)-noise, 0))
	}
	return scales
}

// noiseVariance returns the variance of the entries around the components. For a fit to complete images this is the mean
// variance of the omitted components.
func (m *pca) noiseVariance() float64 {
	if m.noise > 0 {
		return m.noise
	}
	variance := m.objective * float64(m.pixels)
	for _, v := range m.variances {
		variance += float64(v)
	}
	least := max(leastNoise*variance/float64(m.pixels), leastVariance)
	return max(m.objective*float64(m.pixels)/float64(max(m.pixels-m.units, 1)), least)
}

// encodeHoled computes the codes of images with missing entries: their expectation given the observed entries.
func (m *pca) encodeHoled(images, codes []float32) error {
	k, p := m.units, m.pixels
	scales, noise := m.scales(), m.noiseVariance()
	failed := make([]error, len(images)/p)
	team.For(len(failed), 1, func(i, _ int) {
		image := images[i*p : (i+1)*p]
		if !hasNaN(image) {
			return
		}
		e := newPosterior(k)
		var known []float64 // rows of s W for observed entries
		row := make([]float64, k)
		for j, v := range image {
			if v != v {
				continue
			}
			for q, s := range scales {
				row[q] = s * float64(m.atoms[q*p+j])
			}
			known = append(known, row...)
			kernel.Float64().AddScaled(e.b, e.b, row, float64(v)-float64(m.bias[j]))
		}
		gram, upper := make([]float64, k*k), make([]float64, 0, triangle(k))
		if n := len(known) / k; n > 0 {
			kernel.Float64().Gemm(true, false, k, k, n, 1, known, k, known, k, 0, gram, k)
		}
		for q := range k {
			upper = append(upper, gram[q*k+q:(q+1)*k]...)
		}
		failed[i] = e.solve(upper, noise)
		for q, s := range scales {
			codes[i*k+q] = float32(s * e.h[q])
		}
	})
	return errors.Join(failed...)
}
