package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
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

// fastCausalSoftmax computes the same bytes as causalSoftmax[float32]: a group of rows is added side by side, each in its own order.
func fastCausalSoftmax(s CausalSoftmaxOp) units[float32] {
	every := lists.Of(s.Length, func(i int) float32 { return 1 })
	return func(dst []float32, in [][]float32, _ []float32, from, to int) {
		k := vector.Float32()
		for i, rows := from*s.Rows, 0; i < to*s.Rows; i += rows {
			first := i % s.Length
			rows = min(group, s.Length-first)
			at := func(r int) (y, x []float32) {
				n := first + r + 1
				return dst[(i+r)*s.Length:][:n], in[0][(i+r)*s.Length:][:n]
			}
			for r := range rows {
				y, x := at(r)
				k.AddScalar(y, x, -k.Maximum(x))
				k.ExpRounded(y, y)
			}
			var sums [group]float32
			joint := 0 // elements that are added side by side
			if rows == group {
				joint = first + 1
				sums = sumsOfGroup(dst[i*s.Length:], s.Length, joint)
			}
			for r := range rows {
				y, x := at(r)
				for _, v := range y[joint:] {
					sums[r] += v
				}
				if k.DivScalar(y, y, sums[r]); y[0] != y[0] { // a value is not finite
					softmaxWhere(y, x, every)
				}
				clear(dst[(i+r)*s.Length:][len(y):s.Length])
			}
		}
	}
}
