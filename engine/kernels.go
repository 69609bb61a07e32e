package engine

import (
	"math"

	"tessera/engine/ir"
	"tessera/kernel"
)

// kernels holds the element-wise kernels of one precision by primitive, in the forms that a chain needs: on vectors, and
// with a number on either side. Unary primitives are under unary. nil entries fall back to a plain loop.
type kernels[T ir.Float] struct {
	set    *kernel.Set[T]
	unary  [ir.Primitives]kernel.Unary[T]
	binary [ir.Primitives]kernel.Binary[T]
	right  [ir.Primitives]kernel.Scalar[T] // f(a[i], s)
	left   [ir.Primitives]kernel.Scalar[T] // f(s, a[i])
}

// kernelSet returns the best kernels of this machine.
func kernelSet[T ir.Float]() *kernel.Set[T] {
	if s, ok := any(kernel.Float32()).(*kernel.Set[T]); ok {
		return s
	}
	return any(kernel.Float64()).(*kernel.Set[T])
}

func newKernels[T ir.Float](s *kernel.Set[T]) *kernels[T] {
	k := &kernels[T]{set: s}
	k.unary = [ir.Primitives]kernel.Unary[T]{
		ir.Abs: s.Abs, ir.Sign: s.Sign, ir.Exp: s.Exp, ir.Log: s.Log, ir.Neg: s.Neg, ir.Square: s.Square, ir.Sqrt: s.Sqrt,
		ir.Reciprocal: s.Reciprocal, ir.InvSqrt: s.InvSqrt, ir.Cube: s.Cube, ir.Tanh: s.Tanh, ir.Sigmoid: s.Sigmoid,
		ir.Log1p: s.Log1p, ir.Expm1: s.Expm1, ir.Softplus: s.Softplus,
		ir.Copy: func(dst, a []T) { copy(dst, a) },
	}
	k.binary = [ir.Primitives]kernel.Binary[T]{
		ir.Add: s.Add, ir.Sub: s.Sub, ir.Mul: s.Mul, ir.Div: s.Div, ir.Maximum: s.Max, ir.Minimum: s.Min,
		ir.Lt: s.Lt, ir.Gt: s.Gt, ir.Lte: s.Lte, ir.Gte: s.Gte, ir.Eq: s.Eq, ir.Ne: s.Ne,
	}
	k.right = [ir.Primitives]kernel.Scalar[T]{
		ir.Add: s.AddScalar, ir.Mul: s.MulScalar, ir.Div: s.DivScalar, ir.Maximum: s.MaxScalar, ir.Minimum: s.MinScalar,
		ir.Sub: func(dst, a []T, x T) { s.AddScalar(dst, a, -x) },
		ir.Lt:  s.LtScalar, ir.Gt: s.GtScalar, ir.Lte: s.LteScalar, ir.Gte: s.GteScalar, ir.Eq: s.EqScalar, ir.Ne: s.NeScalar,
	}
	k.left = [ir.Primitives]kernel.Scalar[T]{
		ir.Add: s.AddScalar, ir.Mul: s.MulScalar, ir.Sub: s.ScalarSub, ir.Div: s.ScalarDiv, ir.Maximum: s.MaxScalar, ir.Minimum: s.MinScalar,
		ir.Lt: s.GtScalar, ir.Gt: s.LtScalar, ir.Lte: s.GteScalar, ir.Gte: s.LteScalar, ir.Eq: s.EqScalar, ir.Ne: s.NeScalar,
	}
	for p := ir.Primitive(0); p < ir.Primitives; p++ {
		k.fallBack(p)
	}
	return k
}

// fallBack fills the entries that the kernels lack with plain loops.
func (k *kernels[T]) fallBack(p ir.Primitive) {
	eval := p.Eval
	if p.Args() == 1 {
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

// startOf is the initial value of the accumulators of a reduction.
func startOf(r ir.Reducer) float64 {
	if r == ir.Max {
		return math.Inf(-1)
	}
	return 0
}
