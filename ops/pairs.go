package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
)

// withDiagonalOp is the spec of [WithDiagonal], partnersOp of [Partners] and partnersGradOp of its transpose, which is its
// derivative.
type (
	withDiagonalOp struct{ Value float64 }
	partnersOp     struct{}
	partnersGradOp struct{}
)

// WithDiagonal returns the square matrix x with v for every element of its diagonal. The derivative there is 0.
func WithDiagonal(x *gorgonia.Node, v float64) (*gorgonia.Node, error) {
	n, err := square("with diagonal", x)
	if err != nil {
		return nil, err
	}
	return Unitwise{Spec: withDiagonalOp{v}, Out: []int{n, n}, Units: n, ByUnit: []bool{true},
		Float32: withDiagonal[float32](n, v, itself), Float64: withDiagonal[float64](n, v, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return withDiagonal[float32](n, v, at), withDiagonal[float64](n, v, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(WithDiagonal(grad, 0))
		},
	}.Apply(x)
}

// Partners returns n elements of the matrix x (n, n), n even: row i gives column (i + n/2) mod n. Its derivative puts the
// gradients at these elements.
func Partners(x *gorgonia.Node) (*gorgonia.Node, error) {
	n, err := square("partners", x)
	if err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, fmt.Errorf("partners: got shape %v, want an even number of rows", x.Shape())
	}
	return Unitwise{Spec: partnersOp{}, Out: []int{n}, Units: n, ByUnit: []bool{true},
		Float32: partners[float32](n, itself), Float64: partners[float64](n, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return partners[float32](n, at), partners[float64](n, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(unpartner(grad)) },
	}.Apply(x)
}

// unpartner is the transpose of [Partners].
func unpartner(x *gorgonia.Node) (*gorgonia.Node, error) {
	n := x.Shape()[0]
	return Unitwise{Spec: partnersGradOp{}, Out: []int{n, n}, Units: n, ByUnit: []bool{true},
		Float32: unpartners[float32](n, itself), Float64: unpartners[float64](n, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return unpartners[float32](n, at), unpartners[float64](n, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) { return one(Partners(grad)) },
	}.Apply(x)
}

// square returns the number of rows of a square matrix.
func square(what string, x *gorgonia.Node) (int, error) {
	shape := x.Shape()
	if len(shape) != 2 || shape[0] != shape[1] {
		return 0, fmt.Errorf("%s: got shape %v, want a square matrix", what, shape)
	}
	return shape[0], nil
}

// itself is the number of a row of the whole matrix.
func itself(row int) int { return row }

func withDiagonal[T Float](n int, v float64, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		copy(dst[from*n:to*n], in[0][from*n:to*n])
		for i := from; i < to; i++ {
			dst[i*n+at(i)] = T(v)
		}
	}
}

func partners[T Float](n int, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			dst[i] = in[0][i*n+(at(i)+n/2)%n]
		}
	}
}

func unpartners[T Float](n int, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*n : to*n])
		for i := from; i < to; i++ {
			dst[i*n+(at(i)+n/2)%n] = in[0][i]
		}
	}
}
