package kernel

import (
	"math"
)

// portable returns the kernels in plain Go. They are the reference for all others and the fallback on every machine.
func portable[T Float]() *Set[T] {
	s := &Set[T]{Name: "portable", Gemm: gemmPortable[T]}
	portableBinary(s)
	portableScalar(s)
	portableUnary(s)
	portableFused(s)
	portableReduce(s)
	s.SparseGemm = portableSparse(s)
	return s
}

func portableBinary[T Float](s *Set[T]) {
	s.Add = binary(func(a, b T) T { return a + b })
	s.Sub = binary(func(a, b T) T { return a - b })
	s.Mul = binary(func(a, b T) T { return a * b })
	s.Div = binary(func(a, b T) T { return a / b })
	s.Max = binary(larger[T])
	s.Min = binary(smaller[T])
	s.Gt = binary(func(a, b T) T { return indicator[T](a > b) })
	s.Gte = binary(func(a, b T) T { return indicator[T](a >= b) })
	s.Lt = binary(func(a, b T) T { return indicator[T](a < b) })
	s.Lte = binary(func(a, b T) T { return indicator[T](a <= b) })
	s.Eq = binary(func(a, b T) T { return indicator[T](a == b) })
	s.Ne = binary(func(a, b T) T { return indicator[T](a != b) })
}

func portableScalar[T Float](s *Set[T]) {
	s.AddScalar = scalar(func(a, s T) T { return a + s })
	s.ScalarSub = scalar(func(a, s T) T { return s - a })
	s.MulScalar = scalar(func(a, s T) T { return a * s })
	s.DivScalar = scalar(func(a, s T) T { return a / s })
	s.ScalarDiv = scalar(func(a, s T) T { return s / a })
	s.MaxScalar = scalar(func(a, s T) T {
		if s > a {
			return s
		}
		return a
	})
	s.MinScalar = scalar(func(a, s T) T {
		if s < a {
			return s
		}
		return a
	})
	s.GtScalar = scalar(func(a, s T) T { return indicator[T](a > s) })
	s.GteScalar = scalar(func(a, s T) T { return indicator[T](a >= s) })
	s.LtScalar = scalar(func(a, s T) T { return indicator[T](a < s) })
	s.LteScalar = scalar(func(a, s T) T { return indicator[T](a <= s) })
	s.EqScalar = scalar(func(a, s T) T { return indicator[T](a == s) })
	s.NeScalar = scalar(func(a, s T) T { return indicator[T](a != s) })
	s.LeakyReLU = scalar(func(a, s T) T { return leaky(a, a, s) })
	s.Fill = func(dst []T, s T) {
		for i := range dst {
			dst[i] = s
		}
	}
}

func portableUnary[T Float](s *Set[T]) {
	s.Neg = unary(func(a T) T { return -a })
	s.Abs = unary(func(a T) T { return T(math.Abs(float64(a))) })
	s.Sign = unary(sign[T])
	s.Square = unary(func(a T) T { return a * a })
	s.Cube = unary(func(a T) T { return T(a*a) * a })
	s.Sqrt = unary(func(a T) T { return T(math.Sqrt(float64(a))) })
	s.Reciprocal = unary(func(a T) T { return 1 / a })
	s.InvSqrt = unary(func(a T) T { return 1 / T(math.Sqrt(float64(a))) })
	s.Exp = unary(func(a T) T { return T(math.Exp(float64(a))) })
	s.Expm1 = unary(func(a T) T { return T(math.Expm1(float64(a))) })
	s.Log = unary(func(a T) T { return T(math.Log(float64(a))) })
	s.Log1p = unary(func(a T) T { return T(math.Log1p(float64(a))) })
	s.Sigmoid = unary(func(a T) T { return T(sigmoid(float64(a))) })
	s.Tanh = unary(func(a T) T { return T(math.Tanh(float64(a))) })
	s.Softplus = unary(func(a T) T { return T(softplus(float64(a))) })
	s.ExpRounded = s.Exp
	s.NormalCDF = unary(func(a T) T { return T(normalCDF(float64(a))) })
	s.NormalPDF = unary(func(a T) T { return T(normalPDF(float64(a))) })
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func normalPDF(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func portableFused[T Float](s *Set[T]) {
	s.Clamp = scalar2(clamp[T])
	s.AddScaled = binaryScalar(func(a, b, s T) T { return a + b*s })
	s.LeakyReLUGrad = binaryScalar(leaky[T])
	s.MulAdd = func(dst, a, b, c []T) {
		n := min(len(dst), len(a), len(b), len(c))
		dst, a, b, c = dst[:n], a[:n], b[:n], c[:n]
		for i := range dst {
			dst[i] = a[i]*b[i] + c[i]
		}
	}
	s.FromBytes = func(dst []T, src []uint8) {
		n := min(len(dst), len(src))
		for i, v := range src[:n] {
			dst[i] = T(v) / 255
		}
	}
}

func unary[T Float](f func(a T) T) Unary[T] {
	return func(dst, a []T) {
		n := min(len(dst), len(a))
		dst, a = dst[:n], a[:n]
		for i, v := range a {
			dst[i] = f(v)
		}
	}
}

func binary[T Float](f func(a, b T) T) Binary[T] {
	return func(dst, a, b []T) {
		n := min(len(dst), len(a), len(b))
		dst, a, b = dst[:n], a[:n], b[:n]
		for i, v := range a {
			dst[i] = f(v, b[i])
		}
	}
}

func scalar[T Float](f func(a, s T) T) Scalar[T] {
	return func(dst, a []T, s T) {
		n := min(len(dst), len(a))
		dst, a = dst[:n], a[:n]
		for i, v := range a {
			dst[i] = f(v, s)
		}
	}
}

func scalar2[T Float](f func(a, s, t T) T) Scalar2[T] {
	return func(dst, a []T, s, t T) {
		n := min(len(dst), len(a))
		dst, a = dst[:n], a[:n]
		for i, v := range a {
			dst[i] = f(v, s, t)
		}
	}
}

func binaryScalar[T Float](f func(a, b, s T) T) BinaryScalar[T] {
	return func(dst, a, b []T, s T) {
		n := min(len(dst), len(a), len(b))
		dst, a, b = dst[:n], a[:n], b[:n]
		for i, v := range a {
			dst[i] = f(v, b[i], s)
		}
	}
}

func indicator[T Float](b bool) T {
	if b {
		return 1
	}
	return 0
}

func larger[T Float](a, b T) T {
	if a > b || a != a {
		return a
	}
	return b
}

func smaller[T Float](a, b T) T {
	if a < b || a != a {
		return a
	}
	return b
}

func clamp[T Float](a, lo, hi T) T {
	if lo > a {
		a = lo
	}
	if hi < a {
		a = hi
	}
	return a
}

func sign[T Float](a T) T {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return a
}

func leaky[T Float](g, y, slope T) T {
	if y > 0 {
		return g
	}
	return g * slope
}

// sigmoid computes exponentials of numbers <= 0 only, so it does not overflow, and very negative numbers give accurate
// results.
func sigmoid(a float64) float64 {
	e := math.Exp(-math.Abs(a))
	if a < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

func softplus(a float64) float64 {
	return larger(0, a) + math.Log1p(math.Exp(-math.Abs(a)))
}

// The blocks of the portable product. A panel of packed A (portableMC x portableKC) stays in the L1 or L2 cache. The
// micro-kernel keeps a tile of portableTile x portableTile sums in registers.
const (
	portableTile = 4
	portableKC   = 256
	portableMC   = 64
	portableNC   = 512
)

// gemmPortable is [Gemm] in plain Go. It packs both operands into panels of four rows or columns, one k after the
// other, padded with zeros, and multiplies the panels tile by tile.
func gemmPortable[T Float](transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	scaleRows(m, n, beta, c, ldc)
	if m == 0 || n == 0 || k == 0 || alpha == 0 {
		return
	}
	ars, acs := strides(transA, lda)
	brs, bcs := strides(transB, ldb)
	pool := workspaces[T]()
	w := pool.take()
	pa, pb := w.a[:portableMC*portableKC], w.b[:portableNC*portableKC]
	for j := 0; j < n; j += portableNC {
		nc := min(portableNC, n-j)
		for p := 0; p < k; p += portableKC {
			kc := min(portableKC, k-p)
			packPanels(pb, b[p*brs+j*bcs:], nc, kc, bcs, brs)
			for i := 0; i < m; i += portableMC {
				mc := min(portableMC, m-i)
				packPanels(pa, a[i*ars+p*acs:], mc, kc, ars, acs)
				multiplyPanels(pa, pb, mc, nc, kc, alpha, c[i*ldc+j:], ldc)
			}
		}
	}
	pool.give(w)
}

// strides returns the distances between rows and between columns of op(X), stored with leading dimension ld.
func strides(trans bool, ld int) (row, column int) {
	if trans {
		return 1, ld
	}
	return ld, 1
}

// packPanels copies count lines of kc elements into panels of four lines. In a panel, element i of all four lines
// precedes element i+1.
func packPanels[T Float](dst, src []T, count, kc, line, step int) {
	for i := 0; i < count; i += portableTile {
		panel := dst[i*kc : (i+portableTile)*kc]
		for r := range portableTile {
			if i+r >= count {
				for p := range kc {
					panel[p*portableTile+r] = 0
				}
				continue
			}
			at := (i + r) * line
			for p := range kc {
				panel[p*portableTile+r] = src[at]
				at += step
			}
		}
	}
}

func multiplyPanels[T Float](pa, pb []T, mc, nc, kc int, alpha T, c []T, ldc int) {
	for j := 0; j < nc; j += portableTile {
		for i := 0; i < mc; i += portableTile {
			tile := tileProduct(pa[i*kc:(i+portableTile)*kc], pb[j*kc:(j+portableTile)*kc])
			for r := range min(portableTile, mc-i) {
				row := c[(i+r)*ldc+j:]
				for s := range min(portableTile, nc-j) {
					row[s] += alpha * tile[r][s]
				}
			}
		}
	}
}

// tileProduct multiplies one panel of A by one panel of B. The sixteen sums are separate variables, so that they stay
// in registers.
func tileProduct[T Float](a, b []T) (t [portableTile][portableTile]T) {
	var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 T
	for len(a) >= 4 && len(b) >= 4 {
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		v := a[0]
		c00 += v * b0
		c01 += v * b1
		c02 += v * b2
		c03 += v * b3
		v = a[1]
		c10 += v * b0
		c11 += v * b1
		c12 += v * b2
		c13 += v * b3
		v = a[2]
		c20 += v * b0
		c21 += v * b1
		c22 += v * b2
		c23 += v * b3
		v = a[3]
		c30 += v * b0
		c31 += v * b1
		c32 += v * b2
		c33 += v * b3
		a, b = a[4:], b[4:]
	}
	return [4][4]T{{c00, c01, c02, c03}, {c10, c11, c12, c13}, {c20, c21, c22, c23}, {c30, c31, c32, c33}}
}

// portableReduce sets the reductions of s to plain loops. They sum in float64, one element after the other. The error
// of a float32 result is then about one rounding, so they serve as a reference for back ends that sum in several lanes.
func portableReduce[T Float](s *Set[T]) {
	s.Sum = reduce(func(a T) float64 { return float64(a) })
	s.SumAbs = reduce(func(a T) float64 { return math.Abs(float64(a)) })
	s.SumSquares = reduce(func(a T) float64 { return float64(a) * float64(a) })
	s.Dot = reduce2(func(a, b T) float64 { return float64(a) * float64(b) })
	s.SquaredDistance = reduce2(func(a, b T) float64 {
		d := float64(a) - float64(b)
		return d * d
	})
	s.Maximum = func(a []T) T {
		m := T(math.Inf(-1))
		for _, v := range a {
			m = larger(m, v)
		}
		return m
	}
}

func reduce[T Float](f func(a T) float64) Reduce[T] {
	return func(a []T) T {
		var sum float64
		for _, v := range a {
			sum += f(v)
		}
		return T(sum)
	}
}

func reduce2[T Float](f func(a, b T) float64) Reduce2[T] {
	return func(a, b []T) T {
		n := min(len(a), len(b))
		a, b = a[:n], b[:n]
		var sum float64
		for i, v := range a {
			sum += f(v, b[i])
		}
		return T(sum)
	}
}

var portableSteps = stepSet{
	name: "portable", sgd: sgdPortable, sgdMomentum: sgdMomentumPortable, adam: adamPortable, adamW: adamWPortable,
	adadelta: adadeltaPortable, adagrad: adagradPortable, rmsProp: rmsPropPortable, rmsPropMomentum: rmsPropMomentumPortable,
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func sgdPortable(w, g []float32, lr, decay float32) {
	n := min(len(w), len(g))
	w, g = w[:n], g[:n]
	for i, d := range g {
		w[i] -= lr * (d + decay*w[i])
	}
}

func sgdMomentumPortable(w, g, buf []float32, lr, momentum, decay, own, buffered float32) {
	n := min(len(w), len(g), len(buf))
	w, g, buf = w[:n], g[:n], buf[:n]
	for i, d := range g {
		d += decay * w[i]
		buf[i] = momentum*buf[i] + d
		w[i] -= lr * (own*d + buffered*buf[i])
	}
}

func adamPortable(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, decay float32) {
	n := min(len(w), len(g), len(m), len(v))
	w, g, m, v = w[:n], g[:n], m[:n], v[:n]
	for i, d := range g {
		d += decay * w[i]
		m[i] = beta1*m[i] + rest1*d
		v[i] = beta2*v[i] + rest2*d*d
		w[i] -= step * m[i] / (sqrt32(v[i])*scale + eps)
	}
}

func adamWPortable(w, g, m, v []float32, beta1, rest1, beta2, rest2, step, scale, eps, keep float32) {
	n := min(len(w), len(g), len(m), len(v))
	w, g, m, v = w[:n], g[:n], m[:n], v[:n]
	for i, d := range g {
		m[i] = beta1*m[i] + rest1*d
		v[i] = beta2*v[i] + rest2*d*d
		w[i] = keep*w[i] - step*m[i]/(sqrt32(v[i])*scale+eps)
	}
}

func adadeltaPortable(w, g, sq, acc []float32, lr, rho, rest, eps, decay float32) {
	n := min(len(w), len(g), len(sq), len(acc))
	w, g, sq, acc = w[:n], g[:n], sq[:n], acc[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = rho*sq[i] + rest*d*d
		u := d * sqrt32((acc[i]+eps)/(sq[i]+eps))
		w[i] -= lr * u
		acc[i] = rho*acc[i] + rest*u*u
	}
}

func adagradPortable(w, g, sum []float32, lr, eps, decay float32) {
	n := min(len(w), len(g), len(sum))
	w, g, sum = w[:n], g[:n], sum[:n]
	for i, d := range g {
		d += decay * w[i]
		sum[i] += d * d
		w[i] -= lr * d / (sqrt32(sum[i]) + eps)
	}
}

func rmsPropPortable(w, g, sq []float32, lr, alpha, rest, eps, decay float32) {
	n := min(len(w), len(g), len(sq))
	w, g, sq = w[:n], g[:n], sq[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = alpha*sq[i] + rest*d*d
		w[i] -= lr * d / (sqrt32(sq[i]) + eps)
	}
}

func rmsPropMomentumPortable(w, g, sq, buf []float32, lr, alpha, rest, eps, decay, momentum float32) {
	n := min(len(w), len(g), len(sq), len(buf))
	w, g, sq, buf = w[:n], g[:n], sq[:n], buf[:n]
	for i, d := range g {
		d += decay * w[i]
		sq[i] = alpha*sq[i] + rest*d*d
		buf[i] = momentum*buf[i] + d/(sqrt32(sq[i])+eps)
		w[i] -= lr * buf[i]
	}
}
