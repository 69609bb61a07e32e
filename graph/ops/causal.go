package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// CausalSoftmaxOp is the spec of [CausalSoftmax]: the number of rows of x per sample, and their length.
type CausalSoftmaxOp struct{ Rows, Length int }

// CausalSoftmax returns the [Softmax] of x (batch, ..., n, n) over the first i+1 elements of each row i of the last two axes. The other elements of the
// result are exactly 0, and so are their derivatives.
func CausalSoftmax(x *gorgonia.Node) (*gorgonia.Node, error) {
	xs := x.Shape()
	if d := len(xs); d < 3 || xs[d-1] != xs[d-2] {
		return nil, fmt.Errorf("causal softmax: got the shape %v, want (batch, ..., n, n)", xs)
	}
	s := CausalSoftmaxOp{volume.Of(xs[1 : len(xs)-1]), xs[len(xs)-1]}
	return Unitwise{
		Spec:     s,
		Out:      xs.Clone(),
		Units:    xs[0],
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Work:     10 * float64(xs.TotalSize()),
		Float32:  fastCausalSoftmax(s),
		Float64:  causalSoftmax[float64](s),
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := softmaxGrad().Apply(y, grad) // the gradient is 0 where y is 0
			return gorgonia.Nodes{g}, err
		},
	}.Apply(x)
}

func causalSoftmax[T Float](s CausalSoftmaxOp) units[T] {
	every := lists.Of(s.Length, func(i int) T { return 1 })
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * s.Rows; i < to*s.Rows; i++ {
			n := i%s.Length + 1
			row := dst[i*s.Length:][:s.Length]
			softmaxWhere(row[:n], in[0][i*s.Length:][:n], every[:n])
			clear(row[n:])
		}
	}
}

// fastCausalSoftmax computes the same bytes as causalSoftmax[float32].
func fastCausalSoftmax(s CausalSoftmaxOp) units[float32] {
	every := lists.Of(s.Length, func(i int) float32 { return 1 })
	return func(dst []float32, in [][]float32, _ []float32, from, to int) {
		for i := from * s.Rows; i < to*s.Rows; i++ {
			n := i%s.Length + 1
			row, x := dst[i*s.Length:][:s.Length], in[0][i*s.Length:][:n]
			if fastSoftmax(row[:n], [][]float32{x}, n); row[0] != row[0] { // a value is not finite
				softmaxWhere(row[:n], x, every)
			}
			clear(row[n:])
		}
	}
}
