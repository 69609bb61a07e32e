package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/internal/volume"
	vector "tessera/kernel"
)

// reshapeOp is the spec of [Reshape].
type reshapeOp struct{ Shape []int }

// Reshape returns x with another shape of equal size. Gorgonia's result shares memory with x without the tape machine's
// knowledge: computing in place then overwrites x, even a batch of images or a weight. This op is safe.
func Reshape(x *gorgonia.Node, shape ...int) (*gorgonia.Node, error) {
	to := tensor.Shape(shape).Clone()
	if len(x.Shape()) == 0 || len(to) == 0 || volume.Of(x.Shape()) != volume.Of(to) {
		return nil, fmt.Errorf("reshape: got shape %v, want as many values as %v", x.Shape(), to)
	}
	l := &layout{ir: ir.Reshape{}}
	var err error
	l.op, err = newOp(reshapeOp{to}, gorgonia.Nodes{x}, to, nil, func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return one(Reshape(grad, l.in[0]...))
	})
	if err != nil {
		return nil, err
	}
	l.alike = len(l.in[0]) == len(to)
	l.f32 = func(dst []float32, in [][]float32) { copy(dst, in[0]) }
	l.f64 = func(dst []float64, in [][]float64) { copy(dst, in[0]) }
	return gorgonia.ApplyOp(l, x)
}

// transposeOp is the spec of [Transpose].
type transposeOp struct{}

// Transpose returns the transpose (m, n) of x (n, m). (Gorgonia's transpose moves the elements of its input in place, even
// of a weight.) Its derivative is itself.
func Transpose(x *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 {
		return nil, fmt.Errorf("transpose: got shape %v, want a matrix", x.Shape())
	}
	n, m := x.Shape()[0], x.Shape()[1]
	l := &layout{ir: ir.Swapped}
	var err error
	l.op, err = newOp(transposeOp{}, gorgonia.Nodes{x}, tensor.Shape{m, n}, nil, func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return one(Transpose(grad))
	})
	if err != nil {
		return nil, err
	}
	l.f32 = func(dst []float32, in [][]float32) { transpose(dst, in[0], n, m) }
	l.f64 = func(dst []float64, in [][]float64) { transpose(dst, in[0], n, m) }
	return gorgonia.ApplyOp(l, x)
}

// transpose writes the transpose of x (n, m).
func transpose[T Float](dst, x []T, n, m int) {
	for j := range m {
		for i, row := 0, dst[j*n:(j+1)*n]; i < n; i++ {
			row[i] = x[i*m+j]
		}
	}
}

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

// JoinOp is the spec of [Join], ColumnsOp of [Columns]. widenOp is that of the derivative of Columns, which puts a matrix into
// columns From, From+1, ... of a matrix of zeros with Of columns.
type (
	JoinOp    struct{}
	ColumnsOp struct{ From, Count int }
	widenOp   struct{ From, Of int }
)

// Join returns the matrix (n, a+b) whose rows are those of x (n, a), each followed by that of y (n, b).
func Join(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || len(y.Shape()) != 2 || x.Shape()[0] != y.Shape()[0] {
		return nil, fmt.Errorf("join: got shapes %v and %v, want matrices with equally many rows", x.Shape(), y.Shape())
	}
	n, a, b := x.Shape()[0], x.Shape()[1], y.Shape()[1]
	return Unitwise{
		Spec:     JoinOp{},
		Out:      tensor.Shape{n, a + b},
		Units:    n,
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Float32:  join[float32](a, b),
		Float64:  join[float64](a, b),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			left := c.Do("left", func() (*gorgonia.Node, error) { return Columns(grad, 0, a) })
			right := c.Do("right", func() (*gorgonia.Node, error) { return Columns(grad, a, b) })
			return gorgonia.Nodes{left, right}, c.Err()
		},
	}.Apply(x, y)
}

// Columns returns count columns of the matrix x, beginning at a column.
func Columns(x *gorgonia.Node, from, count int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || from < 0 || count < 1 || from+count > x.Shape()[1] {
		return nil, fmt.Errorf("columns: got columns %d to %d of shape %v", from, from+count, x.Shape())
	}
	n, of := x.Shape()[0], x.Shape()[1]
	return Unitwise{
		Spec:     ColumnsOp{from, count},
		Out:      tensor.Shape{n, count},
		Units:    n,
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  columns[float32](from, count, of),
		Float64:  columns[float64](from, count, of),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(widen(grad, from, of))
		},
	}.Apply(x)
}

// widen is the transpose of [Columns].
func widen(x *gorgonia.Node, from, of int) (*gorgonia.Node, error) {
	n, count := x.Shape()[0], x.Shape()[1]
	return Unitwise{
		Spec:     widenOp{from, of},
		Out:      tensor.Shape{n, of},
		Units:    n,
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  widened[float32](from, count, of),
		Float64:  widened[float64](from, count, of),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(Columns(grad, from, count))
		},
	}.Apply(x)
}

func join[T Float](a, b int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			row := dst[i*(a+b):][:a+b]
			copy(row, in[0][i*a:][:a])
			copy(row[a:], in[1][i*b:][:b])
		}
	}
}

func columns[T Float](first, count, of int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			copy(dst[i*count:][:count], in[0][i*of+first:])
		}
	}
}

func widened[T Float](first, count, of int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			row := dst[i*of:][:of]
			clear(row)
			copy(row[first:], in[0][i*count:][:count])
		}
	}
}
