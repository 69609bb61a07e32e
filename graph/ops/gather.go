package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

// GatherOp is the spec of [Gather], GatherSumOp that of [GatherSum]. ScatterOp is the spec of their derivatives with respect to the
// table. Rows and Width are the shape of the table, Each is the number of indices per sample.
type (
	GatherOp    struct{ Rows, Width, Each int }
	GatherSumOp struct{ Rows, Width, Each int }
	ScatterOp   struct{ Rows, Width, Each int }
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

// GatherSum returns the weighted sums of the rows of the matrix table (rows, width) at the indices (batch, n) of each sample: (batch, width). A weight
// of 0 leaves its index out, whatever it is. Weights (batch, n) have no gradient.
func GatherSum(table, indices, weights *gorgonia.Node) (*gorgonia.Node, error) {
	if len(table.Shape()) != 2 || len(indices.Shape()) != 2 || !indices.Shape().Eq(weights.Shape()) {
		return nil, fmt.Errorf("gather sum: got a table of shape %v, indices of shape %v and weights of shape %v, want a matrix, and a weight for each index of a sample",
			table.Shape(), indices.Shape(), weights.Shape())
	}
	batch := indices.Shape()[0]
	s := GatherSumOp{table.Shape()[0], table.Shape()[1], indices.Shape()[1]}
	return Unitwise{
		Spec:     s,
		Out:      tensor.Shape{batch, s.Width},
		Units:    batch,
		ByUnit:   []bool{false, true, true},
		Fixed:    []bool{false, true, true},
		Division: ir.ByUnits,
		Work:     float64(indices.Shape().TotalSize() * s.Width),
		Float32:  gatheredSums(s, vector.Float32),
		Float64:  gatheredSums(s, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := scatterRows(in[1], grad, ScatterOp(s), in[2])
			return gorgonia.Nodes{g, nil, nil}, err
		},
	}.Apply(table, indices, weights)
}

// scatterRows computes the transpose of [Gather]: row i of the result is the sum of the rows of g whose index is i. With weights it is that of
// [GatherSum]: all indices of a sample have one row of g, which is multiplied by the weight.
func scatterRows(indices, g *gorgonia.Node, s ScatterOp, weights ...*gorgonia.Node) (*gorgonia.Node, error) {
	in := append(gorgonia.Nodes{indices, g}, weights...)
	return Unitwise{
		Spec:     s,
		Out:      tensor.Shape{s.Rows, s.Width},
		Units:    s.Rows,
		Scatters: s.Width,
		ByUnit:   make([]bool, len(in)),
		Fixed:    []bool{true, false, true}[:len(in)],
		Division: ir.BySums,
		Work:     float64((indices.Shape().TotalSize() + s.Rows) * s.Width),
		Float32:  scattered(s, vector.Float32),
		Float64:  scattered(s, vector.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			if len(in) == 2 {
				return second(Gather(grad, in[0]))
			}
			g, err := GatherSum(grad, in[0], in[2])
			return gorgonia.Nodes{nil, g, nil}, err
		},
	}.Apply(in...)
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

func gatheredSums[T Float](s GatherSumOp, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*s.Width : to*s.Width])
		for i := from * s.Each; i < to*s.Each; i++ {
			w, row := in[2][i], dst[i/s.Each*s.Width:][:s.Width]
			if w == 0 {
				continue
			}
			if k := int(in[1][i]); k >= 0 && k < s.Rows && T(k) == in[1][i] {
				kernels().AddScaled(row, row, in[0][k*s.Width:(k+1)*s.Width], w)
				continue
			}
			for j := range row {
				row[j] = nan[T]()
			}
		}
	}
}

func scattered[T Float](s ScatterOp, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*s.Width : to*s.Width])
		each := len(in[0]) * s.Width / len(in[1])
		for i, index := range in[0] {
			k := int(index)
			if k < from || k >= to || T(k) != index {
				continue
			}
			row, g := dst[k*s.Width:(k+1)*s.Width], in[1][i/each*s.Width:][:s.Width]
			if len(in) > 2 {
				if w := in[2][i]; w != 0 {
					kernels().AddScaled(row, row, g, w)
				}
				continue
			}
			for j, v := range g {
				row[j] += v
			}
		}
	}
}
