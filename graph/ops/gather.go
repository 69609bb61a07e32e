package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// GatherOp is the spec of [Gather]. ScatterOp is the spec of its derivative with respect to the table. Rows and Width
// are the shape of the table, Each is the number of indices per sample.
type (
	GatherOp  struct{ Rows, Width, Each int }
	ScatterOp struct{ Rows, Width, Each int }
)

// Gather returns the rows of the matrix table (rows, width) at the given indices (batch, ...): (batch, ..., width).
// Indices are whole numbers from 0 to rows - 1; any other number gives a row of NaN. The derivative adds the gradients
// of each row in the order of the indices, so the result does not depend on the number of threads.
func Gather(table, indices *gorgonia.Node) (*gorgonia.Node, error) {
	if len(table.Shape()) != 2 || len(indices.Shape()) < 1 {
		return nil, fmt.Errorf("gather: got a table of shape %v and indices of shape %v, want a matrix and indices with the batch as first axis", table.Shape(), indices.Shape())
	}
	batch := indices.Shape()[0]
	s := GatherOp{table.Shape()[0], table.Shape()[1], volume.Of(indices.Shape()[1:])}
	return Unitwise{
		Spec:     s,
		Out:      append(indices.Shape().Clone(), s.Width),
		Units:    batch,
		ByUnit:   []bool{false, true},
		Fixed:    []bool{false, true},
		Division: ir.ByUnits,
		Float32:  gathered[float32](s),
		Float64:  gathered[float64](s),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := scatterRows(in[1], grad, ScatterOp(s))
			return gorgonia.Nodes{g, nil}, err
		},
	}.Apply(table, indices)
}

// scatterRows computes the transpose of [Gather]: row i of the result is the sum of the rows of g whose index is i.
func scatterRows(indices, g *gorgonia.Node, s ScatterOp) (*gorgonia.Node, error) {
	return Unitwise{
		Spec:     s,
		Out:      tensor.Shape{s.Rows, s.Width},
		Units:    s.Rows,
		Scatters: s.Width,
		ByUnit:   []bool{false, false},
		Fixed:    []bool{true, false},
		Division: ir.BySums,
		Work:     float64(volume.Of(g.Shape()) + s.Rows*s.Width),
		Float32:  scattered[float32](s),
		Float64:  scattered[float64](s),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(Gather(grad, in[0]))
		},
	}.Apply(indices, g)
}

func gathered[T Float](s GatherOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * s.Each; i < to*s.Each; i++ {
			row := dst[i*s.Width : (i+1)*s.Width]
			if k := int(in[1][i]); k >= 0 && k < s.Rows && T(k) == in[1][i] {
				copy(row, in[0][k*s.Width:(k+1)*s.Width])
				continue
			}
			for j := range row {
				row[j] = nan[T]()
			}
		}
	}
}

func nan[T Float]() T {
	var zero T
	return zero / zero
}

func scattered[T Float](s ScatterOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*s.Width : to*s.Width])
		for i, index := range in[0] {
			k := int(index)
			if k < from || k >= to || T(k) != index {
				continue
			}
			row, g := dst[k*s.Width:(k+1)*s.Width], in[1][i*s.Width:(i+1)*s.Width]
			for j, v := range g {
				row[j] += v
			}
		}
	}
}
