package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/ir"
)

// Transpose returns the transpose (m, n) of x (n, m). (Gorgonia's own moves the elements of its input in place, even those
// of a weight.) Its derivative is itself.
func Transpose(x *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 {
		return nil, fmt.Errorf("transpose: got shape %v, want a matrix", x.Shape())
	}
	n, m := x.Shape()[0], x.Shape()[1]
	return gorgonia.ApplyOp(transposition{&parallel{
		name:   "transpose",
		in:     []tensor.Shape{{n, m}},
		out:    tensor.Shape{m, n},
		units:  m,
		byUnit: []bool{false},
		f32:    transpose[float32](n, m),
		f64:    transpose[float64](n, m),
		derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := Transpose(grad)
			return gorgonia.Nodes{g}, err
		},
	}}, x)
}

type transposition struct{ *parallel }

// IR implements [ir.Described].
func (transposition) IR() ir.Op { return ir.Swapped }

func transpose[T Float](n, m int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for j := from; j < to; j++ {
			for i, row := 0, dst[j*n:(j+1)*n]; i < n; i++ {
				row[i] = in[0][i*m+j]
			}
		}
	}
}
