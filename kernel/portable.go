package kernel

import "math"

// portable returns the kernels in plain Go, the reference for all others and the fall-back on every machine.
func portable[T Float]() *Set[T] {
	s := &Set[T]{Name: "portable", Gemm: gemmPortable[T]}
	portableBinary(s)
	portableScalar(s)
	portableUnary(s)
	portableFused(s)
	portableReduce(s)
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
	s.SigmoidGrad = binary(func(g, y T) T { return g * y * (1 - y) })
	s.TanhGrad = binary(func(g, y T) T { return g * (1 - y*y) })
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
}

func portableFused[T Float](s *Set[T]) {
	s.Affine = scalar2(func(a, s, t T) T { return a*s + t })
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

// sigmoid computes the exponential only of numbers <= 0, so it does not overflow and keeps its digits for very negative
// numbers.
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
