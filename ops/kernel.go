package ops

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Float is the precision of a graph.
type Float interface{ float32 | float64 }

// Kernel is implemented by ops whose output has the shape of every input and is computed in blocks of consecutive
// elements, each from the same block of the inputs alone: element-wise ops in blocks of one element, row-wise ops in
// blocks of one row. An engine may compute any whole number of blocks at a time, in any order, on any goroutine, and so
// fuse and split ops that it does not know.
type Kernel interface {
	gorgonia.Op
	// Block is the length of one block for inputs of that shape.
	Block(shape tensor.Shape) int
	// Float32 computes the elements of dst, a whole number of blocks, from equally long parts of the inputs. dst may be
	// one of the inputs.
	Float32(dst []float32, in [][]float32, block int)
	// Float64 is Float32 in the other precision.
	Float64(dst []float64, in [][]float64, block int)
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
