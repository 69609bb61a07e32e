package data

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/engine/kernel"
)

const (
	// whitenFloor is the share of the mean variance that is added to every variance before the division, so that directions in
	// which the samples hardly vary are not amplified to noise.
	whitenFloor = 0.01
	// whitenMost is the largest number of values of a sample that can be whitened: the matrix has its square.
	whitenMost = 4096
)

// Whiten is zero-phase component analysis (ZCA). With the mean m and the covariance C = U diag(v) Uᵀ of the fitted samples, and
// e = 0.01 mean(v),
//
//	y = U diag(1 / √(v + e)) Uᵀ (x - m)
//
// so that the values of y are almost uncorrelated and have almost equal variances, and y resembles x as closely as possible.
// Missing entries, fewer than two samples, and samples of more than 4,096 values are errors.
//
// Source: A. J. Bell, T. J. Sejnowski, The "independent components" of natural scenes are edge filters, Vision Research 37(23),
// 1997.
type Whiten struct{}

func init() {
	Scalings.Register("whiten", "ZCA (x - mean), with almost uncorrelated values of almost equal variance", func() Scaler { return &Whiten{} })
}

func (*Whiten) Fits() bool { return true }

func (*Whiten) Fit(m *Images) (*Scaling, error) {
	n := m.pixels
	switch {
	case m.Holed():
		return nil, fmt.Errorf("needs all entries of the samples; take scale = %q", "standardise")
	case n > whitenMost:
		return nil, fmt.Errorf("got samples of %d values, want at most %d; take smaller images, or patches of them", n, whitenMost)
	case m.n < 2:
		return nil, fmt.Errorf("got %d fitted samples, want at least 2", m.n)
	}
	mean, covariance := m.moments()
	exact := m.isWide() && slices.ContainsFunc(m.statistics(n), statistic.close)
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(n, covariance), true) {
		return nil, fmt.Errorf("the eigenvalues of the covariance do not converge; take scale = %q", "standardise")
	}
	var u mat.Dense
	eigen.VectorsTo(&u)
	variances, total := eigen.Values(nil), 0.0
	for i := range n {
		total += covariance[i*n+i]
	}
	if !(total > 0) {
		return nil, fmt.Errorf("all fitted samples are equal")
	}
	roots := make([]float64, n)
	for i, v := range variances {
		roots[i] = math.Sqrt(max(v, 0) + whitenFloor*total/float64(n))
	}
	s := &Scaling{Shift: make([]float32, n), Factor: make([]float32, n), Unmix: product3(&u, roots)}
	for i := range n {
		s.setShift(i, mean[i], exact)
		s.Factor[i], roots[i] = 1, 1/roots[i]
	}
	s.Mix = product3(&u, roots)
	return s, nil
}

// product3 returns u diag(d) uᵀ.
func product3(u *mat.Dense, d []float64) []float32 {
	var left, all mat.Dense
	left.Mul(u, mat.NewDiagDense(len(d), d))
	all.Mul(&left, u.T())
	out := make([]float32, len(d)*len(d))
	for i, v := range all.RawMatrix().Data {
		out[i] = float32(v)
	}
	return out
}

// moments returns the mean and the covariance (of the population) of all samples, in two passes in float64.
func (m *Images) moments() (mean, covariance []float64) {
	n := m.pixels
	mean, covariance = make([]float64, n), make([]float64, n*n)
	m.eachValue(func(i int, v float64) { mean[i] += v / float64(m.n) })
	const block = 256
	rows, row, wide := make([]float64, 0, block*n), make([]float32, n), make([]float64, n)
	for i := range m.n {
		m.wideRow(wide, row, i)
		for j, v := range wide {
			rows = append(rows, v-mean[j])
		}
		if len(rows) == cap(rows) || i == m.n-1 {
			kernel.Float64().Gemm(true, false, n, n, len(rows)/n, 1/float64(m.n), rows, n, rows, n, 1, covariance, n)
			rows = rows[:0]
		}
	}
	return mean, covariance
}
