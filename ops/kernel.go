package ops

import (
	"gorgonia.org/gorgonia"
	"tessera/ir"
)

// Float is the precision of a graph.
type Float interface{ float32 | float64 }

// Kernel is an op that is computed in blocks.
type Kernel interface {
	gorgonia.Op
	ir.Blocks
}

// kernel computes the elements of dst as [Kernel] says.
type kernel[T Float] func(dst []T, in [][]T, block int)

// elementwise turns a function of one value into a kernel.
func elementwise[T Float](f func(x T) T) kernel[T] {
	return func(dst []T, in [][]T, _ int) {
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x)
		}
	}
}

// elementwise2 turns a function of two values into a kernel.
func elementwise2[T Float](f func(x, y T) T) kernel[T] {
	return func(dst []T, in [][]T, _ int) {
		second := in[1][:len(dst)]
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x, second[i])
		}
	}
}
