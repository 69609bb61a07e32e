package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	vector "tessera/kernel"
)

// Tile returns the vector x (n) repeated: (times*n), y[t*n+i] = x[i]. It lays numbers of channels over an image whose
// channels come last. Its derivative is [Fold].
func Tile(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 {
		return nil, fmt.Errorf("tile: got shape %v %d times, want a vector at least once", x.Shape(), times)
	}
	n := x.Shape()[0]
	o := &parallel{
		name:   fmt.Sprintf("tile(%d)", times),
		out:    tensor.Shape{times * n},
		units:  times,
		byUnit: []bool{false},
		f32:    tile[float32](n),
		f64:    tile[float64](n),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := Fold(grad, times)
			return gorgonia.Nodes{g}, err
		},
	}
	return o.apply(x)
}

// Fold returns the sum (n) of the equal parts of the vector x (times*n): y[i] = sum over t of x[t*n+i]. Its derivative is
// [Tile].
func Fold(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 || x.Shape()[0]%times != 0 {
		return nil, fmt.Errorf("fold: shape %v does not consist of %d equal parts", x.Shape(), times)
	}
	n := x.Shape()[0] / times
	o := &parallel{
		name:   fmt.Sprintf("fold(%d)", times),
		out:    tensor.Shape{n},
		units:  n,
		byUnit: []bool{false},
		work:   float64(times * n),
		f32:    fold(n, vector.Float32),
		f64:    fold(n, vector.Float64),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := Tile(grad, times)
			return gorgonia.Nodes{g}, err
		},
	}
	return o.apply(x)
}

func tile[T Float](n int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for t := from; t < to; t++ {
			copy(dst[t*n:(t+1)*n], in[0])
		}
	}
}

func fold[T Float](n int, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		x, y := in[0], dst[from:to]
		copy(y, x[from:to])
		for at := n; at < len(x); at += n {
			kernels().Add(y, y, x[at+from:at+to])
		}
	}
}
