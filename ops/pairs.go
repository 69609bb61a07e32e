package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// WithDiagonal returns the square matrix x with v in the place of every element of its diagonal. The derivative there is 0.
func WithDiagonal(x *gorgonia.Node, v float64) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) != 2 || shape[0] != shape[1] {
		return nil, fmt.Errorf("with diagonal: got shape %v, want a square matrix", shape)
	}
	n := shape[0]
	o := &parallel{
		name:   fmt.Sprintf("withDiagonal(%v)", v),
		out:    tensor.Shape{n, n},
		units:  n,
		byUnit: []bool{true},
		f32:    withDiagonal[float32](n, v),
		f64:    withDiagonal[float64](n, v),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := WithDiagonal(grad, 0)
			return gorgonia.Nodes{g}, err
		},
	}
	return o.apply(x)
}

func withDiagonal[T Float](n int, v float64) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		copy(dst[from*n:to*n], in[0][from*n:to*n])
		for i := from; i < to; i++ {
			dst[i*n+i] = T(v)
		}
	}
}

// Partners returns, of a matrix (2 n, 2 n), the vector of the elements whose column is n from their row, around the end: row i
// gives column i + n, row n + i column i.
func Partners(x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) != 2 || shape[0] != shape[1] || shape[0]%2 != 0 {
		return nil, fmt.Errorf("partners: got shape %v, want a square matrix of even size", shape)
	}
	n := shape[0]
	o := &parallel{
		name:   "partners",
		out:    tensor.Shape{n},
		units:  n,
		byUnit: []bool{true},
		f32:    partners[float32](n),
		f64:    partners[float64](n),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := unpartner(grad)
			return gorgonia.Nodes{g}, err
		},
	}
	return o.apply(x)
}

// unpartner is the transpose of [Partners].
func unpartner(x *gorgonia.Node) (*gorgonia.Node, error) {
	n := x.Shape()[0]
	o := &parallel{
		name:   "unpartners",
		out:    tensor.Shape{n, n},
		units:  n,
		byUnit: []bool{true},
		f32:    unpartners[float32](n),
		f64:    unpartners[float64](n),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := Partners(grad)
			return gorgonia.Nodes{g}, err
		},
	}
	return o.apply(x)
}

func partners[T Float](n int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			dst[i] = in[0][i*n+(i+n/2)%n]
		}
	}
}

func unpartners[T Float](n int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*n : to*n])
		for i := from; i < to; i++ {
			dst[i*n+(i+n/2)%n] = in[0][i]
		}
	}
}
