package engine

import (
	"math"

	"tessera/graph"
	"tessera/kernel"
)

// kernels holds the element-wise kernels of one precision by primitive, in the forms that a chain needs: on vectors,
// and with a number on either side. Unary primitives stand under unary. nil entries fall back to a plain loop.
type kernels[T graph.Float] struct {
	set    *kernel.Set[T]
	unary  [primitives]kernel.Unary[T]
	binary [primitives]kernel.Binary[T]
	right  [primitives]kernel.Scalar[T] // f(a[i], s)
	left   [primitives]kernel.Scalar[T] // f(s, a[i])
}

// kernelSet returns the best kernels of this machine.
func kernelSet[T graph.Float]() *kernel.Set[T] {
	if s, ok := any(kernel.Float32()).(*kernel.Set[T]); ok {
		return s
	}
	return any(kernel.Float64()).(*kernel.Set[T])
}

func newKernels[T graph.Float](s *kernel.Set[T]) *kernels[T] {
	k := &kernels[T]{set: s}
	k.unary = [primitives]kernel.Unary[T]{
		abs: s.Abs, sign: s.Sign, exp: s.Exp, ln: s.Log, neg: s.Neg, square: s.Square, sqrt: s.Sqrt,
		inv: s.Reciprocal, invSqrt: s.InvSqrt, cube: s.Cube, tanh: s.Tanh, sigmoid: s.Sigmoid,
		log1p: s.Log1p, expm1: s.Expm1, softplus: s.Softplus,
		copied: func(dst, a []T) { copy(dst, a) },
	}
	k.binary = [primitives]kernel.Binary[T]{
		add: s.Add, sub: s.Sub, mul: s.Mul, div: s.Div, maximum: s.Max, minimum: s.Min,
		lt: s.Lt, gt: s.Gt, lte: s.Lte, gte: s.Gte, eq: s.Eq, ne: s.Ne,
	}
	k.right = [primitives]kernel.Scalar[T]{
		add: s.AddScalar, mul: s.MulScalar, div: s.DivScalar, maximum: s.MaxScalar, minimum: s.MinScalar,
		sub: func(dst, a []T, x T) { s.AddScalar(dst, a, -x) },
		lt:  s.LtScalar, gt: s.GtScalar, lte: s.LteScalar, gte: s.GteScalar, eq: s.EqScalar, ne: s.NeScalar,
	}
	k.left = [primitives]kernel.Scalar[T]{
		add: s.AddScalar, mul: s.MulScalar, sub: s.ScalarSub, div: s.ScalarDiv, maximum: s.MaxScalar, minimum: s.MinScalar,
		lt: s.GtScalar, gt: s.LtScalar, lte: s.GteScalar, gte: s.LteScalar, eq: s.EqScalar, ne: s.NeScalar,
	}
	for p := primitive(0); p < primitives; p++ {
		k.fallBack(p)
	}
	return k
}

// fallBack fills the entries that the kernels lack with plain loops.
func (k *kernels[T]) fallBack(p primitive) {
	eval := primitiveInfo[p].eval
	if primitiveInfo[p].args == 1 {
		if k.unary[p] == nil {
			k.unary[p] = func(dst, a []T) {
				for i := range dst {
					dst[i] = T(eval(float64(a[i]), 0))
				}
			}
		}
		return
	}
	if k.binary[p] == nil {
		k.binary[p] = func(dst, a, b []T) {
			for i := range dst {
				dst[i] = T(eval(float64(a[i]), float64(b[i])))
			}
		}
	}
	if k.right[p] == nil {
		k.right[p] = func(dst, a []T, s T) {
			for i := range dst {
				dst[i] = T(eval(float64(a[i]), float64(s)))
			}
		}
	}
	if k.left[p] == nil {
		k.left[p] = func(dst, a []T, s T) {
			for i := range dst {
				dst[i] = T(eval(float64(s), float64(a[i])))
			}
		}
	}
}

// zero of a reduction: what its accumulators start from.
func (r reducer) start() float64 {
	if r == largest {
		return math.Inf(-1)
	}
	return 0
}
