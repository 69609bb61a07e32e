package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
)

// Float is the precision of a graph.
type Float interface{ float32 | float64 }

// Kernel is an op that is computed in blocks.
type Kernel interface {
	gorgonia.Op
	ir.Blocks
}

// Blockwise describes a user-defined op whose inputs and output have one shape, and whose output is computed in blocks of
// consecutive elements: each element from the same element of the inputs, or each row of the last axis from the same row
// of the inputs. The engine fuses such ops with their neighbours and shares them over its threads.
type Blockwise struct {
	// Spec identifies the op: a struct of a type that only this op uses, whose fields are all attributes of the op
	// (numbers, strings, and lists or structs of them, no pointers). Ops with equal specs are equal: the graph computes
	// equal expressions once. The op's name is the type's name without "Op".
	Spec any
	Rows bool // blocks are rows of the last axis, not elements
	// Float32 computes the elements of dst, a whole number of blocks, from slices of the inputs of equal length. dst may be
	// one of the inputs. Float32 must be safe for concurrent use. [Map] and [Map2] convert a function of numbers.
	Float32 func(dst []float32, in [][]float32, block int)
	// Float64 is Float32 in the other precision.
	Float64 func(dst []float64, in [][]float64, block int)
	// Derivative returns the gradients; nil for an op without derivative.
	Derivative Derivative
	// Fixed marks inputs without a derivative: the output is a step function of them. nil if all have one.
	Fixed []bool
}

// Apply adds the op to the graph of its inputs. It returns an error if their shapes differ or the description is
// incomplete.
func (b Blockwise) Apply(in ...*gorgonia.Node) (*gorgonia.Node, error) {
	o := &blockwise{describe: b}
	var err error
	if len(in) > 0 && in[0] != nil {
		o.out = in[0].Shape()
	}
	if o.op, err = newOp(b.Spec, in, o.out, b.Fixed, b.Derivative); err != nil {
		return nil, err
	}
	if b.Float32 == nil || b.Float64 == nil {
		return nil, fmt.Errorf("%s: got no kernel for one of the precisions, want Float32 and Float64", o.name)
	}
	for _, s := range o.in[1:] {
		if !slices.Equal(s, o.out) {
			return nil, fmt.Errorf("%s: shapes %v and %v differ", o.name, o.out, s)
		}
	}
	o.alike = true
	o.f32 = func(dst []float32, in [][]float32) { b.Float32(dst, in, o.Block(o.out)) }
	o.f64 = func(dst []float64, in [][]float64) { b.Float64(dst, in, o.Block(o.out)) }
	return gorgonia.ApplyOp(o, in...)
}

// blockwise is the op of a [Blockwise].
type blockwise struct {
	op
	describe Blockwise
}

var _ Kernel = (*blockwise)(nil)

// Block implements [ir.Blocks].
func (o *blockwise) Block(shape []int) int {
	if o.describe.Rows && len(shape) > 0 {
		return shape[len(shape)-1]
	}
	return 1
}

// Float32 implements [ir.Blocks].
func (o *blockwise) Float32(dst []float32, in [][]float32, block int) {
	o.describe.Float32(dst, in, block)
}

// Float64 implements [ir.Blocks].
func (o *blockwise) Float64(dst []float64, in [][]float64, block int) {
	o.describe.Float64(dst, in, block)
}

// kernel computes the elements of dst; see [Blockwise].
type kernel[T Float] = func(dst []T, in [][]T, block int)

// Map returns the kernel of a function of one number.
func Map[T Float](f func(x T) T) func(dst []T, in [][]T, block int) {
	return func(dst []T, in [][]T, _ int) {
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x)
		}
	}
}

// Map2 returns the kernel of a function of two numbers.
func Map2[T Float](f func(x, y T) T) func(dst []T, in [][]T, block int) {
	return func(dst []T, in [][]T, _ int) {
		second := in[1][:len(dst)]
		for i, x := range in[0][:len(dst)] {
			dst[i] = f(x, second[i])
		}
	}
}
