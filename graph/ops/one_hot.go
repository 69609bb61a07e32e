package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// OneHotOp is the spec of [OneHot]. Of is the number of classes, Each the number of indices per sample.
type OneHotOp struct{ Of, Each int }

// OneHot returns a row of n values for each element of indices (batch, ...): (batch, ..., n). The value is 1 at the
// index and 0 elsewhere. Indices are whole numbers from 0 to n - 1; any other number gives a row of NaN. Indices have
// no gradient.
func OneHot(indices *gorgonia.Node, n int) (*gorgonia.Node, error) {
	if len(indices.Shape()) < 1 || n < 1 {
		return nil, fmt.Errorf("one-hot: got indices of shape %v and %d classes, want indices with the batch as first axis and at least one class", indices.Shape(), n)
	}
	s := OneHotOp{n, volume.Of(indices.Shape()[1:])}
	return Unitwise{
		Spec:     s,
		Out:      append(indices.Shape().Clone(), n),
		Units:    indices.Shape()[0],
		ByUnit:   []bool{true},
		Fixed:    []bool{true},
		Division: ir.ByUnits,
		Float32:  oneHot[float32](s),
		Float64:  oneHot[float64](s),
	}.Apply(indices)
}

func oneHot[T Float](s OneHotOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * s.Each; i < to*s.Each; i++ {
			row := dst[i*s.Of : (i+1)*s.Of]
			clear(row)
			if k := int(in[0][i]); k >= 0 && k < s.Of && T(k) == in[0][i] {
				row[k] = 1
				continue
			}
			for j := range row {
				row[j] = nan[T]()
			}
		}
	}
}
