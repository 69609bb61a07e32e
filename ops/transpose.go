package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
)

// TransposeOp is the spec of [Transpose].
type TransposeOp struct{}

// Transpose returns the transpose (m, n) of x (n, m). (Gorgonia's transpose moves the elements of its input in place, even
// of a weight.) Its derivative is itself.
func Transpose(x *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 {
		return nil, fmt.Errorf("transpose: got shape %v, want a matrix", x.Shape())
	}
	n, m := x.Shape()[0], x.Shape()[1]
	l := &layout{ir: ir.Swapped}
	var err error
	l.op, err = newOp(TransposeOp{}, gorgonia.Nodes{x}, tensor.Shape{m, n}, nil, func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
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
