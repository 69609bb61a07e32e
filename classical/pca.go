package classical

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"tessera/data"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

// PCA finds the principal components: the orthonormal atoms W that minimise |X - mean - H W|^2 with H = (X - mean) W', in the
// order of the variance that they explain. All eigenvectors of the covariance are computed exactly in float64; the first
// `components` of them are the atoms. Of a sparse matrix whose absent entries are zero only these are computed, to a relative
// precision of 1e-12 of their variances, without the covariance: by a block Krylov method. The sign of each atom is such that its entry of the largest magnitude is positive. With
// fewer images than pixels, components beyond the rank are 0.
//
// With missing or hidden entries it is probabilistic PCA, x = mean + codes W + noise with normally distributed codes and
// noise, fitted by expectation maximisation to the observed entries; its atoms are made orthonormal. If all entries are
// observed, the two models are equal. An image with missing entries is encoded by its expected code given the observed
// entries, even if the model was fitted to complete images. The objective of such a fit is minus the mean log-likelihood of an
// entry, in nats, which never rises.
//
// Sources: I. T. Jolliffe, Principal component analysis, 2nd edition, Springer 2002; M. Tipping, C. Bishop, Probabilistic
// principal component analysis, JRSS B 61(3), 1999; A. Ilin, T. Raiko, Practical approaches to principal component analysis in
// the presence of missing values, JMLR 11, 2010.
type PCA struct {
	Components int     `toml:"components" want:"> 0" doc:"atoms"`
	Iterations int     `toml:"iterations" want:">= 0" optional:"true" doc:"with missing or hidden entries: maximum number of iterations; 0 means 100"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" optional:"true" doc:"with missing or hidden entries: stop when an iteration raises the log-likelihood of an entry by less than this, in nats; 0 means 0.0001"`
}

func init() {
	Registry.Register("pca", "principal components: the orthonormal atoms that explain most of the variance",
		func() Method { return &PCA{Components: 100} })
}

// Describe implements [Method]. A fit to complete images is one iteration; the bias is the mean image.
func (s *PCA) Describe() Fitting {
	holed := s.Iterations
	if holed == 0 {
		holed = pcaIterations
	}
	return Fitting{Name: "pca", Units: s.Components, Iterations: 1, Signed: true, Biased: true, Holed: holed,
		Sizes: func(images, pixels int) error { return fewerThanImagesAndPixels(s.Components, images, pixels, "") }}
}

// New implements [Method]. It does not use the seed.
func (s *PCA) New(shape []int, _ uint64) (Model, error) {
	return NewModel(s, shape, 0, func(b Base) Algorithm { return &pca{Base: b, settings: *s} })
}

// pca is fitted in one iteration, or in several for images with missing entries.
type pca struct {
	Base
	settings  PCA
	images    Images
	variances []float32 // variance of each component
	noise     float64   // noise variance of a fit to images with missing entries; else 0
	holed     *ppca     // fit to images with missing entries; nil if there are none
}

const noiseName = "noise"

// variancesName returns the name of the tensor of the variances, which differs if the state also contains the noise.
func (m *pca) variancesName() string {
	if m.noise > 0 {
		return "variances with noise"
	}
	return "variances"
}

func (m *pca) Start(images Images) error {
	m.images = images
	if m.iteration == 0 {
		m.objective = math.MaxFloat64
	}
	if !gapped(images) {
		return nil
	}
	var err error
	if m.holed, err = newPPCA(m, images); m.holed != nil {
		m.fit.Iterations, m.fit.Rises = m.fit.Holed, true
	}
	return err
}

// gapped reports whether images may have missing entries. Images without missing entries are read in blocks.
func gapped(images Images) bool {
	switch images := images.(type) {
	case withNaN:
		return true
	case Matrix:
		return hasNaN(images.values)
	}
	return false
}

// Step implements [Model]. A fit to images with missing entries ends when the rise of the log-likelihood per entry falls
// below a number of nats.
func (m *pca) Step(ctx context.Context) (Progress, error) {
	before := m.objective
	p, err := m.Base.Step(ctx)
	if err == nil && m.holed != nil {
		least := m.settings.Tolerance
		if least == 0 {
			least = pcaTolerance
		}
		m.done = m.iteration >= m.fit.Iterations || before-p.Objective < least
		p.Done = m.done
	}
	return p, err
}

func (m *pca) Improve(ctx context.Context) (float64, error) {
	if m.images == nil {
		return 0, fmt.Errorf("Step before Begin")
	}
	if m.holed != nil {
		return m.holed.step(ctx)
	}
	return m.components(ctx)
}

// components computes the components and returns the mean squared error.
func (m *pca) components(ctx context.Context) (float64, error) {
	if s := sparseOf(m.images); s != nil {
		return m.sparseComponents(ctx, s)
	}
	n, p := m.images.Len(), m.pixels
	mean, err := m.mean(ctx)
	if err != nil {
		return 0, err
	}
	size, step := p, 2048
	if n < p { // the eigenvectors of X'X from those of the smaller X X'
		size, step = n, n
	}
	gram := make([]float64, size*size)
	centred := make([]float64, step*p)
	err = m.blocks(ctx, step, func(x []float32, count int) error {
		team.For(count, fit.BlockSize, func(from, to int) {
			for i := from; i < to; i++ {
				row, image := centred[i*p:(i+1)*p], x[i*p:(i+1)*p]
				for j, v := range image {
					row[j] = float64(v) - mean[j]
				}
			}
		})
		if n < p {
			addDualGram(kernel.Float64().Gemm, gram, centred, n, p)
		} else {
			addGram(kernel.Float64().Gemm, gram, centred, count, p)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	values, v, err := eigen(symmetric(gram, size), size)
	if err != nil {
		return 0, err
	}
	if n < p {
		v = m.fromDual(v, values, centred)
	}
	m.keep(values, v, mean)
	return lists.Sum(values[m.units:]) / float64(n) / float64(p), nil
}

// sparseComponents is components for a sparse matrix. The mean is subtracted from products, not from the samples.
func (m *pca) sparseComponents(ctx context.Context, s *sparse) (float64, error) {
	n, p, k := s.n, s.p, m.units
	mean, squares := make([]float64, p), 0.0
	for i := range n {
		columns, values := s.images.Entries(i)
		if err := acceptValues(values, len(values)+1, true, false); err != nil {
			return 0, err
		}
		for e, j := range columns {
			mean[j] += float64(values[e]) / float64(n)
			squares += float64(values[e]) * float64(values[e])
		}
	}
	for _, v := range mean {
		squares -= float64(n) * v * v
	}
	size := min(n, p)
	values, v, err := krylov(ctx, size, k, s.timesGram(mean))
	if err != nil {
		return 0, err
	}
	if n < p {
		turned, atoms := transpose(v, k, n), make([]float64, p*k)
		timesColumns(s, addScaled, atoms, turned, k)
		s.centreColumns(atoms, turned, k, mean)
		v = unitRows(transpose(atoms, p, k), values, p)
	}
	m.keep(values, v, mean)
	return max(squares-lists.Sum(values), 0) / float64(n) / float64(p), nil
}

// unitRows divides rows by the roots of eigenvalues. Rows of eigenvalues that are 0 up to rounding become 0.
func unitRows(rows, values []float64, p int) []float64 {
	for i := range len(rows) / p {
		scale := 0.0
		if values[i] > 1e-12*values[0] {
			scale = 1 / math.Sqrt(values[i])
		}
		row := rows[i*p : (i+1)*p]
		kernel.Float64().MulScalar(row, row, scale)
	}
	return rows
}

// krylov is like [leading], to a relative precision of 1e-12 of every eigenvalue: it adds the products of the last block to the
// basis, which contains all earlier blocks, until the eigenvalues in this basis no longer change.
//
// Source: C. Musco, C. Musco, Randomized block Krylov methods for stronger and faster approximate singular value
// decomposition, NIPS 2015.
func krylov(ctx context.Context, n, count int, times func(y, q []float64, m int)) (values, v []float64, err error) {
	const precision = 1e-12
	block := min(count+10, n)
	rng := random.Stream(0, "init/krylov", 0)
	next, gemm := make([]float64, block*n), kernel.Float64().Gemm
	for i := range next {
		next[i] = rng.NormFloat64()
	}
	var basis, products, before []float64
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		have := len(basis) / n
		add := min(block, n-have)
		fresh, q := next[:add*n], make([]float64, add*n)
		for range 2 { // because of rounding
			if have > 0 {
				overlap := make([]float64, add*have)
				gemm(false, true, add, have, n, 1, fresh, n, basis, n, 0, overlap, have)
				gemm(false, false, add, n, have, -1, overlap, have, basis, n, 1, fresh, n)
			}
			if err := orthonormalise(q, fresh, add, n); err != nil {
				return nil, nil, err
			}
			copy(fresh, q)
		}
		y := make([]float64, add*n)
		times(y, q, add)
		basis, products = append(basis, q...), append(products, y...)
		have += add
		small := make([]float64, have*have)
		gemm(false, true, have, have, n, 1, basis, n, products, n, 0, small, have)
		all, rotation, err := eigen(symmetric(small, have), have)
		if err != nil {
			return nil, nil, err
		}
		converged := before != nil
		for i := range before {
			converged = converged && all[i]-before[i] <= precision*all[0]
		}
		if converged || have == n {
			v = make([]float64, count*n)
			gemm(false, false, count, n, have, 1, rotation, have, basis, n, 0, v, n)
			return all[:count], v, nil
		}
		before = all[:count]
		next = y
	}
}

// mean returns the mean image, or an error for non-finite images.
func (m *pca) mean(ctx context.Context) ([]float64, error) {
	mean := make([]float64, m.pixels)
	err := m.blocks(ctx, fit.BlockSize, func(x []float32, _ int) error {
		if err := acceptValues(x, m.pixels, true, false); err != nil {
			return err
		}
		for ; len(x) > 0; x = x[m.pixels:] {
			for j, v := range x[:m.pixels] {
				mean[j] += float64(v)
			}
		}
		return nil
	})
	for i := range mean {
		mean[i] /= float64(m.images.Len())
	}
	return mean, err
}

// blocks calls f for all images in blocks of the given size.
func (m *pca) blocks(ctx context.Context, size int, f func(x []float32, count int) error) error {
	n := m.images.Len()
	x := make([]float32, min(size, n)*m.pixels)
	var indices []int
	for from := 0; from < n; from += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+size, n)
		indices = span(indices, from, to)
		m.images.Batch(x, indices)
		if err := f(x[:(to-from)*m.pixels], to-from); err != nil {
			return err
		}
	}
	return nil
}

// fromDual returns the eigenvectors of X'X: u'X / sqrt(eigenvalue) for the eigenvectors u of X X'.
func (m *pca) fromDual(u, values, centred []float64) []float64 {
	n, p := m.images.Len(), m.pixels
	v := make([]float64, m.units*p)
	kernel.Float64().Gemm(false, false, m.units, p, n, 1, u, n, centred, p, 0, v, p)
	return unitRows(v, values, p)
}

// keep stores the first components.
func (m *pca) keep(values, v, mean []float64) {
	flipSigns(v, m.units, m.pixels)
	m.atoms, m.bias = vectors.Narrow(v[:m.units*m.pixels]), vectors.Narrow(mean)
	m.variances = make([]float32, m.units)
	for i := range m.variances {
		m.variances[i] = float32(values[i] / float64(max(m.images.Len()-1, 1)))
	}
}

// Infer implements [Algorithm]: (X - mean) W', or the expected codes of images with missing entries.
func (m *pca) Infer(images []float32) ([]float32, error) {
	n, centred := len(images)/m.pixels, fit.SubtractRow(images, m.bias)
	codes := make([]float32, n*m.units)
	multiply(false, true, n, m.units, m.pixels, centred, m.atoms, codes)
	if hasNaN(images) {
		return codes, m.encodeHoled(images, codes)
	}
	return codes, nil
}

// Affine is a baseline whose codes of complete images are an affine map of the images.
type Affine interface {
	// Affine returns the weight W (pixels x units, row-major) and the bias b (units) with which codes are x W + b.
	Affine() (weight, bias []float32)
}

// Affine implements [Affine]: W is the transpose of the atoms, b = -mean W.
func (m *pca) Affine() (weight, bias []float32) {
	weight, bias = make([]float32, m.pixels*m.units), make([]float32, m.units)
	for j := range bias {
		sum := 0.0
		for i, v := range m.atoms[j*m.pixels : (j+1)*m.pixels] {
			weight[i*m.units+j] = v
			sum += float64(v) * float64(m.bias[i])
		}
		bias[j] = float32(-sum)
	}
	return weight, bias
}

// Keep implements [Algorithm]. The state of an unfinished fit to complete images is empty.
func (m *pca) Keep(k *Kept) {
	m.keepProgress(k)
	if k.Restores {
		m.noise = k.state.Numbers[noiseName] // missing in fits to complete images
	} else if m.noise > 0 {
		k.Number(noiseName, &m.noise)
	}
	if math.IsNaN(m.noise) || m.noise < 0 {
		k.Fail(fmt.Errorf("number %q: got %v, want > 0", noiseName, m.noise))
	}
	if k.Restores && !m.done && m.noise == 0 {
		return
	}
	k.Tensor(m.variancesName(), &m.variances, m.units)
	k.Tensor(atomsName, &m.atoms, m.units, m.pixels)
	k.Tensor(biasName, &m.bias, m.pixels)
}

func (m *pca) expression(p *ir.Module, x *ir.Value) *ir.Value {
	return m.projected(p, ir.Point(ir.Sub, x.Shape, x, row(p, biasName, m.bias)))
}

// leading computes the count leading eigenvalues, largest first, and orthonormal eigenvectors (rows of v, count x n) of a
// positive semi-definite symmetric n x n matrix, of which times returns the products y = q A for m rows, by block power iteration and a Rayleigh-Ritz step. The first ones are
// accurate; the last ones are accurate enough to initialise a factorisation. This is much faster than computing all
// eigenvectors exactly.
//
// Source: N. Halko, P.-G. Martinsson, J. Tropp, Finding structure with randomness, SIAM Review 53(2), 2011.
func leading(n, count int, seed uint64, times func(y, q []float64, m int)) (values, v []float64, err error) {
	const oversample, rounds = 10, 5
	m := min(count+oversample, n)
	rng := random.Stream(seed, "init/subspace", 0)
	q, y := make([]float64, m*n), make([]float64, m*n)
	for i := range y {
		y[i] = rng.NormFloat64()
	}
	for range rounds {
		if err := orthonormalise(q, y, m, n); err != nil {
			return nil, nil, err
		}
		times(y, q, m)
	}
	if err := orthonormalise(q, y, m, n); err != nil {
		return nil, nil, err
	}
	times(y, q, m)
	small := make([]float64, m*m)
	kernel.Float64().Gemm(false, true, m, m, n, 1, q, n, y, n, 0, small, m)
	all, rotation, err := eigen(small, m)
	if err != nil {
		return nil, nil, err
	}
	v = make([]float64, count*n)
	kernel.Float64().Gemm(false, false, count, n, m, 1, rotation, m, q, n, 0, v, n)
	return all[:count], v, nil
}

// eigen returns all eigenvalues, largest first and at least 0, and the eigenvectors (rows of v) of a positive
// semi-definite symmetric matrix.
func eigen(a []float64, n int) (values, v []float64, err error) {
	var e mat.EigenSym
	if !e.Factorize(mat.NewSymDense(n, a), true) {
		return nil, nil, &data.Error{Problem: fmt.Sprintf("its values are too large or not finite: the eigenvalues of a %d x %d matrix did not converge", n, n),
			Hint: "scale them to [0,1]"}
	}
	var columns mat.Dense
	e.VectorsTo(&columns)
	ascending := e.Values(nil)
	values, v = make([]float64, n), make([]float64, n*n)
	for i := range n {
		values[i] = max(ascending[n-1-i], 0)
		for j := range n {
			v[i*n+j] = columns.At(j, n-1-i)
		}
	}
	return values, v, nil
}

// timesSymmetric computes Y = Q A for row vectors Q (m x n).
func timesSymmetric(y, q, a []float64, m, n int) {
	team.For(n, 128, func(from, to int) {
		kernel.Float64().Gemm(false, false, m, to-from, n, 1, q, n, a[from:], n, 0, y[from:], n)
	})
}

// orthonormalise writes an orthonormal basis of the m rows of y to q, using the eigenvectors of Y Y'. If the rows are
// dependent, the last rows of q are 0.
func orthonormalise(q, y []float64, m, n int) error {
	const rank = 1e-14 // threshold relative to the largest eigenvalue
	gemm := kernel.Float64().Gemm
	gram := make([]float64, m*m)
	gemm(false, true, m, m, n, 1, y, n, y, n, 0, gram, m)
	values, v, err := eigen(gram, m)
	if err != nil {
		return err
	}
	for i, value := range values {
		scale := 0.0
		if value > rank*values[0] {
			scale = 1 / math.Sqrt(value)
		}
		for j := range m {
			v[i*m+j] *= scale
		}
	}
	gemm(false, false, m, n, m, 1, v, m, y, n, 0, q, n)
	return nil
}

// addGram adds X'X of n rows to the upper triangle of g (p x p).
func addGram[T kernel.Float](gemm kernel.Gemm[T], g, x []T, n, p int) {
	const tile = 128
	team.For(p, tile, func(from, to int) {
		gemm(true, false, to-from, p-from, n, 1, x[from:], p, x[from:], p, 1, g[from*p+from:], p)
	})
}

// addDualGram adds X X' of n rows to the upper triangle of g (n x n).
func addDualGram[T kernel.Float](gemm kernel.Gemm[T], g, x []T, n, p int) {
	const tile = 128
	team.For(n, tile, func(from, to int) {
		gemm(false, true, to-from, n-from, p, 1, x[from*p:], p, x[from*p:], p, 1, g[from*n+from:], n)
	})
}

// symmetric returns the symmetric matrix with the given upper triangle.
func symmetric[T kernel.Float](upper []T, n int) []float64 {
	s := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			s[i*n+j] = float64(upper[i*n+j])
			s[j*n+i] = s[i*n+j]
		}
	}
	return s
}

// flipSigns makes the entry of the largest magnitude (the first of equals) of each row positive, because the sign of an
// eigenvector is arbitrary.
func flipSigns(v []float64, rows, columns int) {
	for i := range rows {
		row := v[i*columns : (i+1)*columns]
		var most float64
		for _, x := range row {
			if math.Abs(x) > math.Abs(most) {
				most = x
			}
		}
		if most < 0 {
			for j := range row {
				row[j] = -row[j]
			}
		}
	}
}
