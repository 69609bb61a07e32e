package baselines

import (
	"fmt"
	"math"

	"tessera/data"
	"tessera/internal/random"
	"tessera/kernel"

	"gonum.org/v1/gonum/mat"
	"tessera/parallel/team"
)

// leading computes the count leading eigenvalues, largest first, and orthonormal eigenvectors (rows of v, count x n) of a
// positive semi-definite symmetric matrix a (n x n) by block power iteration and a Rayleigh-Ritz step. The first ones are
// accurate, the last ones accurate enough to initialise a factorisation. It is much faster than computing all eigenvectors
// exactly.
//
// Source: N. Halko, P.-G. Martinsson, J. Tropp, Finding structure with randomness, SIAM Review 53(2), 2011.
func leading(a []float64, n, count int, seed uint64) (values, v []float64, err error) {
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
		timesSymmetric(y, q, a, m, n)
	}
	if err := orthonormalise(q, y, m, n); err != nil {
		return nil, nil, err
	}
	timesSymmetric(y, q, a, m, n)
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

// orthonormalise writes an orthonormal basis of the m rows of y into q, by the eigenvectors of Y Y'. If the rows are
// dependent, the last rows of q are 0.
func orthonormalise(q, y []float64, m, n int) error {
	const rank = 1e-14 // relative to the largest eigenvalue
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

// addGram adds X'X of n rows to g (p x p), whose upper triangle alone is used.
func addGram[T kernel.Float](gemm kernel.Gemm[T], g, x []T, n, p int) {
	const tile = 128
	team.For(p, tile, func(from, to int) {
		gemm(true, false, to-from, p-from, n, 1, x[from:], p, x[from:], p, 1, g[from*p+from:], p)
	})
}

// addDualGram adds X X' of n rows to g (n x n), whose upper triangle alone is used.
func addDualGram[T kernel.Float](gemm kernel.Gemm[T], g, x []T, n, p int) {
	const tile = 128
	team.For(n, tile, func(from, to int) {
		gemm(false, true, to-from, n-from, p, 1, x[from*p:], p, x[from*p:], p, 1, g[from*n+from:], n)
	})
}

// symmetric returns the symmetric matrix with that upper triangle.
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
