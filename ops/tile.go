package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	vector "tessera/kernel"
)

// TileOp is the spec of [Tile], FoldOp of [Fold].
type (
	TileOp struct{ Times int }
	FoldOp struct{ Times int }
)

// Tile returns the vector x (n) repeated: (times*n), y[t*n+i] = x[i]. It broadcasts one number per channel over an image
// with channels last. Its derivative is [Fold].
func Tile(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 {
		return nil, fmt.Errorf("tile: got shape %v %d times, want a vector at least once", x.Shape(), times)
	}
	n := x.Shape()[0]
	o := &Unitwise{
		Spec:     TileOp{times},
		Out:      tensor.Shape{times * n},
		Units:    times,
		ByUnit:   []bool{false},
		Division: ir.Linear,
		Float32:  tile[float32](n),
		Float64:  tile[float64](n),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(Fold(grad, times))
		},
	}
	return o.Apply(x)
}

// Fold returns the sum (n) of the rows of the vector x, taken as (times, n): y[i] = sum over t of x[t*n+i]. Its derivative is
// [Tile].
func Fold(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 || x.Shape()[0]%times != 0 {
		return nil, fmt.Errorf("fold: shape %v does not divide into %d rows", x.Shape(), times)
	}
	n := x.Shape()[0] / times
	o := &Unitwise{
		Spec:     FoldOp{times},
		Out:      tensor.Shape{n},
		Units:    n,
		ByUnit:   []bool{false},
		Division: ir.Linear,
		Work:     float64(times * n),
		Float32:  fold(n, vector.Float32),
		Float64:  fold(n, vector.Float64),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(Tile(grad, times))
		},
	}
	return o.Apply(x)
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
