package ops_test

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/laws/gradcheck"
)

// softsignOp is the spec of the op: the graph, messages and exporters identify the op by this type.
type softsignOp struct{ Scale float64 }

// softsign returns x / (scale + |x|), element by element. Its derivative, scale / (scale + |x|)², is written with
// differentiable ops, so it can be differentiated again.
func softsign(x *gorgonia.Node, scale float64) (*gorgonia.Node, error) {
	return ops.Blockwise{
		Spec:    softsignOp{scale},
		Float32: ops.Map(func(x float32) float32 { return x / (float32(scale) + float32(math.Abs(float64(x)))) }),
		Float64: ops.Map(func(x float64) float64 { return x / (scale + math.Abs(x)) }),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c ops.Chain
			slope := c.Div(ops.Scalar(in[0], scale), c.Square(c.Shift(c.Ramp(in[0], 1, -1), scale)))
			return gorgonia.Nodes{c.Mul(slope, grad)}, c.Err()
		},
	}.Apply(x)
}

// A user-defined elementwise op. The engine fuses it with neighbouring ops.
func ExampleBlockwise() {
	y := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return softsign(b.Leaf("x", []int{3}, []float64{-1, 0.5, 3}, false), 1)
	}
	values, _, err := gradcheck.Evaluate(y)
	fmt.Printf("%.3f %v\n", values, err)
	fmt.Println(gradcheck.Check(gradcheck.Scalar(y)))
	// Output:
	// [-0.500 0.333 0.750] <nil>
	// <nil>
}

// mirrorOp is the spec of the op. It has no attributes, because the shapes determine the op.
type mirrorOp struct{}

// mirror reverses every row of x (n, m). It is its own derivative.
func mirror(x *gorgonia.Node) (*gorgonia.Node, error) {
	n, m := x.Shape()[0], x.Shape()[1]
	return ops.Unitwise{
		Spec:    mirrorOp{},
		Out:     []int{n, m},
		Units:   n,
		ByUnit:  []bool{true},
		Float32: mirrored[float32](m),
		Float64: mirrored[float64](m),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := mirror(grad)
			return gorgonia.Nodes{g}, err
		},
	}.Apply(x)
}

// mirrored computes rows [from, to).
func mirrored[T ops.Float](m int) func(dst []T, in [][]T, _ []T, from, to int) {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		copy(dst[from*m:to*m], in[0][from*m:to*m])
		for i := from; i < to; i++ {
			slices.Reverse(dst[i*m : (i+1)*m])
		}
	}
}

// A user-defined op whose units are rows. The engine distributes the rows over its threads.
func ExampleUnitwise() {
	y := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return mirror(b.Leaf("x", []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}, false))
	}
	values, _, err := gradcheck.Evaluate(y)
	fmt.Println(values, err)
	fmt.Println(gradcheck.Check(gradcheck.Scalar(y)))
	// Output:
	// [3 2 1 6 5 4] <nil>
	// <nil>
}
