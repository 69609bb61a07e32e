package ops

import (
	"cmp"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// Specs of the ops: ArgMaxOp of [ArgMax], StraightOp of [Straight], RefillOp of [Refill].
type (
	ArgMaxOp   struct{ Of, Each int }
	StraightOp struct{}
	RefillOp   struct{ Entries, Width, Rows int }
)

// ArgMax returns the index of the largest value of each row of the last axis: x (batch, ..., n) becomes (batch, ...). Of equal
// values it takes the first. A row with a NaN gives NaN. The result has no gradient.
func ArgMax(x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) < 2 || shape[len(shape)-1] < 1 {
		return nil, fmt.Errorf("arg max: got shape %v, want the batch as first axis and rows as last axis", shape)
	}
	out := shape[:len(shape)-1].Clone()
	s := ArgMaxOp{shape[len(shape)-1], volume.Of(out[1:])}
	return Unitwise{
		Spec:     s,
		Out:      out,
		Units:    out[0],
		ByUnit:   []bool{true},
		Fixed:    []bool{true},
		Division: ir.ByUnits,
		Work:     float64(shape.TotalSize()),
		Float32:  argMax[float32](s),
		Float64:  argMax[float64](s),
	}.Apply(x)
}

func argMax[T Float](s ArgMaxOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * s.Each; i < to*s.Each; i++ {
			row := in[0][i*s.Of : (i+1)*s.Of]
			best, most := 0, row[0]
			for j, v := range row {
				if v > most || v != v {
					best, most = j, v
				}
				if v != v {
					break
				}
			}
			if dst[i] = T(best); most != most {
				dst[i] = most
			}
		}
	}
}

// Straight is the straight-through estimator: its value is y, which has the shape of x, and its gradient with respect to x is
// the upstream gradient, as if its value were x. No gradient reaches y. This is not the derivative, which is 0. Source: Bengio,
// Léonard and Courville, Estimating or propagating gradients through stochastic neurons, 2013.
func Straight(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    StraightOp{},
		Float32: Map2(func(_, y float32) float32 { return y }),
		Float64: Map2(func(_, y float64) float64 { return y }),
		Fixed:   []bool{false, true},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gorgonia.Nodes{grad, nil}, nil
		},
	}.Apply(x, y)
}

// Scatter returns a matrix (rows, width): row i is the sum of the rows of x (n, width) whose index is i. indices (n) has no
// gradient. It is the transpose of [Gather].
func Scatter(indices, x *gorgonia.Node, rows int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || len(indices.Shape()) != 1 || x.Shape()[0] != indices.Shape()[0] || rows < 1 {
		return nil, fmt.Errorf("scatter: got values of shape %v and indices of shape %v, want one index for each row", x.Shape(), indices.Shape())
	}
	return scatterRows(indices, x, ScatterOp{rows, x.Shape()[1], 1})
}

// Refill returns the matrix table (entries, width) with other rows where dead (entries) is not 0. The first such row is
// replaced by the row of x (n, width) with the largest key, the second by that with the second largest key, and so on, from
// the beginning again after n rows. keys has the shape (n); of equal keys the first is the largest. Nothing has a gradient.
func Refill(table, dead, x, keys *gorgonia.Node) (*gorgonia.Node, error) {
	if len(table.Shape()) != 2 || len(x.Shape()) != 2 || table.Shape()[1] != x.Shape()[1] ||
		!dead.Shape().Eq(tensor.Shape{table.Shape()[0]}) || !keys.Shape().Eq(tensor.Shape{x.Shape()[0]}) {
		return nil, fmt.Errorf("refill: got a table %v, marks %v, rows %v and keys %v, want as many marks and keys as rows, and rows of one width",
			table.Shape(), dead.Shape(), x.Shape(), keys.Shape())
	}
	s := RefillOp{table.Shape()[0], table.Shape()[1], x.Shape()[0]}
	return Unitwise{
		Spec:    s,
		Out:     table.Shape().Clone(),
		Units:   1,
		ByUnit:  []bool{false, false, false, false},
		Fixed:   []bool{true, true, true, true},
		Float32: refill[float32](s),
		Float64: refill[float64](s),
	}.Apply(table, dead, x, keys)
}

func refill[T Float](s RefillOp) units[T] {
	return func(dst []T, in [][]T, _ []T, _, _ int) {
		table, dead, x, keys := in[0], in[1], in[2], in[3]
		copy(dst, table)
		var order []int // of the rows of x; nil before the first dead entry
		next := 0
		for i, mark := range dead {
			if mark == 0 {
				continue
			}
			if order == nil {
				order = make([]int, s.Rows)
				for j := range order {
					order[j] = j
				}
				slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[b], keys[a]) })
			}
			row := order[next%s.Rows]
			copy(dst[i*s.Width:(i+1)*s.Width], x[row*s.Width:(row+1)*s.Width])
			next++
		}
	}
}
