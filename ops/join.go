package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
)

// JoinOp is the spec of [Join], ColumnsOp of [Columns]. WidenOp is that of the derivative of Columns, which puts a matrix into
// columns From, From+1, ... of a matrix of zeros with Of columns.
type (
	JoinOp    struct{}
	ColumnsOp struct{ From, Count int }
	WidenOp   struct{ From, Of int }
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
		Spec:     WidenOp{from, of},
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
