package classical

import (
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// group is the number of variables that a sweep updates before it applies their changes to the others: large enough for a fast
// matrix product, and small enough for few vector operations within a group.
const group = 8

// sweeper does cyclic coordinate descent (hierarchical alternating least squares) on many non-negative least-squares problems
// with a common matrix: for each column x >= 0 of X (k x n),
//
//	min 1/2 x'Gx - a'x,   x[j] <- max(0, x[j] + (a[j] - G[j]x) / G[j][j])   for j = 0, ..., k-1.
//
// No step increases the objective of any column. A variable with G[j][j] = 0 has no effect and does not change.
//
// Source: A. Cichocki, A.-H. Phan, Fast local algorithms for large scale nonnegative matrix and tensor factorizations, IEICE
// Trans. Fundamentals E92-A(3), 2009.
type sweeper struct {
	rest  []float32 // group x n: a - GX for the current group
	delta []float32
	// l1 > 0 allows variables of any sign and adds l1 |x|_1 to every objective: the soft threshold at l1 / G[j][j] replaces
	// max(0, .).
	l1 float32
}

func newSweeper(columns int) *sweeper {
	return &sweeper{rest: make([]float32, group*columns), delta: make([]float32, columns)}
}

// sweep updates every variable once in each of the n columns of x; ldx and lda are the row strides of x and a. It returns the
// sum of the squared changes.
func (s *sweeper) sweep(gram []float32, k int, a []float32, lda int, x []float32, ldx, n int) (changed float64) {
	ops := kernel.Float32()
	for from := 0; from < k; from += group {
		to := min(from+group, k)
		for j := from; j < to; j++ {
			copy(s.rest[(j-from)*n:(j-from+1)*n], a[j*lda:])
		}
		ops.Gemm(false, false, to-from, n, k, -1, gram[from*k:], k, x, ldx, 1, s.rest, n)
		for j := from; j < to; j++ {
			g := gram[j*k : (j+1)*k]
			if !(g[j] > 0) {
				continue
			}
			row, delta := x[j*ldx:j*ldx+n], s.delta[:n]
			ops.AddScaled(delta, row, s.rest[(j-from)*n:], 1/g[j])
			if s.l1 > 0 {
				softThreshold(delta, s.l1/g[j])
			} else {
				ops.MaxScalar(delta, delta, 0)
			}
			ops.Sub(delta, delta, row)
			ops.Add(row, row, delta)
			changed += float64(ops.SumSquares(delta))
			for l := j + 1; l < to; l++ {
				rest := s.rest[(l-from)*n : (l-from+1)*n]
				ops.AddScaled(rest, rest, delta, -g[l])
			}
		}
	}
	return changed
}

// softThreshold moves every value towards 0 by t, but not beyond 0.
func softThreshold(x []float32, t float32) {
	for i, v := range x {
		x[i] = max(v-t, 0) + min(v+t, 0)
	}
}

const (
	encodeBlock     = 256  // number of images that are encoded together, with the same number of sweeps
	encodePrecision = 1e-5 // relative precision of the codes of images that were not fitted
)

// encodeSquared returns the codes (n x k) that minimise |X - HW|^2 over H >= 0 for fixed atoms: it sweeps, starting from 0,
// until a sweep changes the codes of a block by less than precision times their norm.
func encodeSquared(images, atoms []float32, k, p int, precision float64) []float32 {
	return encodePenalised(images, atoms, k, p, 0, 0, precision)
}

// encodePenalised is like encodeSquared, with l1 |H|_1 + l2/2 |H|^2 added to half the squared error.
func encodePenalised(images, atoms []float32, k, p int, l1, l2, precision float64) []float32 {
	return encodeBlocks(images, atoms, k, p, l2, func(gram, a, h []float32, n int) {
		solveNonNegative(gram, k, lowered(a, l1), h, n, precision)
	})
}

// encodeLasso is like encodePenalised, for codes of any sign and without l2.
func encodeLasso(images, atoms []float32, k, p int, l1, precision float64) []float32 {
	return encodeBlocks(images, atoms, k, p, 0, func(gram, a, h []float32, n int) {
		s := newSweeper(n)
		s.l1 = float32(l1)
		s.solve(gram, k, a, h, n, precision)
	})
}

// encodeBlocks returns codes (n x k), computed block by block by solve from WW' with l2 on its diagonal and WX'.
func encodeBlocks(images, atoms []float32, k, p int, l2 float64, solve func(gram, a, h []float32, n int)) []float32 {
	gram := make([]float32, k*k)
	gramOf(gram, atoms, k, p)
	gram = ridge(gram, k, l2)
	codes := make([]float32, len(images)/p*k)
	team.For(len(images)/p, encodeBlock, func(from, to int) {
		n := to - from
		a, h := make([]float32, k*n), make([]float32, k*n)
		kernel.Float32().Gemm(false, true, k, n, p, 1, atoms, p, images[from*p:], p, 0, a, n)
		solve(gram, a, h, n)
		copy(codes[from*k:to*k], transpose(h, k, n))
	})
	return codes
}

// solveNonNegative sweeps over h (k x n) until a sweep changes it by less than precision times its norm.
func solveNonNegative(gram []float32, k int, a, h []float32, n int, precision float64) {
	newSweeper(n).solve(gram, k, a, h, n, precision)
}

// solve is like solveNonNegative, with the settings of the sweeper.
func (s *sweeper) solve(gram []float32, k int, a, h []float32, n int, precision float64) {
	const most = 2000
	for range most {
		if s.sweep(gram, k, a, n, h, n, n) <= precision*precision*float64(kernel.Float32().SumSquares(h)) {
			return
		}
	}
}
