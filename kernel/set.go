package kernel

// Float is the two precisions: float32 trains, float64 checks.
type Float interface{ float32 | float64 }

// The shapes of kernels. Every element-wise kernel works on the first n elements of its slices, n being the length of
// the shortest (as the built-in copy does); n may be 0. dst may be the very same slice as an operand, but must not
// overlap one in any other way.
type (
	// Unary computes dst[i] = f(a[i]).
	Unary[T Float] = func(dst, a []T)
	// Binary computes dst[i] = f(a[i], b[i]).
	Binary[T Float] = func(dst, a, b []T)
	// Ternary computes dst[i] = f(a[i], b[i], c[i]).
	Ternary[T Float] = func(dst, a, b, c []T)
	// Scalar computes dst[i] = f(a[i], s).
	Scalar[T Float] = func(dst, a []T, s T)
	// Scalar2 computes dst[i] = f(a[i], s, t).
	Scalar2[T Float] = func(dst, a []T, s, t T)
	// BinaryScalar computes dst[i] = f(a[i], b[i], s).
	BinaryScalar[T Float] = func(dst, a, b []T, s T)
	// Reduce folds a slice, always in the same order for the same length.
	Reduce[T Float] = func(a []T) T
	// Reduce2 folds two slices, always in the same order for the same length.
	Reduce2[T Float] = func(a, b []T) T

	// Gemm computes C = alpha op(A) op(B) + beta C for row-major matrices: op(A) is m x k, op(B) is k x n, C is m x n, and
	// op transposes A if transA is set and B if transB is set. lda, ldb and ldc are the distances between the starts of
	// consecutive rows as stored. With beta = 0, C is not read: a NaN there vanishes. C must not overlap A or B.
	//
	// A call runs on the calling goroutine alone, allocates nothing in the steady state and may run beside others.
	// It panics when a slice is too short for its shape, before touching memory. The order of the additions depends on
	// the shape, the leading dimensions and the back end only: the same call gives the same bytes.
	Gemm[T Float] = func(transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
)

// Set is the kernels of one back end in one precision. The comparisons give 1 or 0; a comparison with NaN is false,
// but for Ne. The bounds in units in the last place (ulp) are for float32 over all inputs, denormal ones and
// denormal results included, against the exact value; zeros, infinities and NaN come out as in package math, whose
// functions are what float64 uses.
type Set[T Float] struct {
	// Name is the name of the back end: "openblas+avx512", "avx512", "avx2", "portable", ...
	Name string

	Gemm Gemm[T]

	Add, Sub, Mul, Div Binary[T] // correctly rounded
	// Max and Min are NaN where one of the operands is. Of -0 and 0 they give b.
	Max, Min                 Binary[T]
	Gt, Gte, Lt, Lte, Eq, Ne Binary[T]

	AddScalar Scalar[T] // a + s
	ScalarSub Scalar[T] // s - a
	MulScalar Scalar[T] // a * s
	DivScalar Scalar[T] // a / s
	ScalarDiv Scalar[T] // s / a
	// MaxScalar and MinScalar keep a where a is NaN or equal to s.
	MaxScalar, MinScalar                                         Scalar[T]
	GtScalar, GteScalar, LtScalar, LteScalar, EqScalar, NeScalar Scalar[T]
	// LeakyReLU is a where a > 0, else s*a.
	LeakyReLU Scalar[T]

	Neg, Abs   Unary[T]
	Sign       Unary[T] // -1, 1, or a itself where a is 0, -0 or NaN
	Square     Unary[T] // a*a
	Cube       Unary[T] // (a*a)*a, <= 1.5 ulp
	Sqrt       Unary[T] // correctly rounded
	Reciprocal Unary[T] // 1/a, correctly rounded
	InvSqrt    Unary[T] // 1/sqrt(a), <= 1.5 ulp
	Exp        Unary[T] // <= 1.1 ulp
	Expm1      Unary[T] // exp(a)-1, <= 2 ulp
	Log        Unary[T] // <= 1 ulp
	Log1p      Unary[T] // log(1+a), <= 2 ulp
	Sigmoid    Unary[T] // 1/(1+exp(-a)), <= 3 ulp, down to the smallest denormals
	Tanh       Unary[T] // <= 3 ulp
	Softplus   Unary[T] // log(1+exp(a)), <= 2 ulp

	// Affine is a*s + t; AddScaled is a + b*s; MulAdd is a*b + c. Whether the product is rounded before the addition depends
	// on the back end.
	Affine    Scalar2[T]
	AddScaled BinaryScalar[T]
	MulAdd    Ternary[T]
	// Clamp is the nearest number to a in [s, t]: t where a > t, s where a < s, else a (also a NaN).
	Clamp Scalar2[T]

	// The gradients of activations: a is the gradient with respect to the output, b the output.
	SigmoidGrad Binary[T] // a * b * (1-b)
	TanhGrad    Binary[T] // a * (1 - b*b)
	// LeakyReLUGrad is a where b > 0, else s*a; with s >= 0, b may be the input as well as the output.
	LeakyReLUGrad BinaryScalar[T]

	// FromBytes writes dst[i] = src[i]/255, correctly rounded.
	FromBytes func(dst []T, src []uint8)
	// Fill writes s everywhere.
	Fill func(dst []T, s T)

	Sum, SumAbs, SumSquares Reduce[T]
	Dot                     Reduce2[T]
	SquaredDistance         Reduce2[T] // sum of (a-b)^2
	// Maximum and Minimum are NaN if an element is; of an empty slice they are -Inf and Inf.
	Maximum, Minimum Reduce[T]
}
