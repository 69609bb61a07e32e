package parts

import (
	"gorgonia.org/gorgonia"
	"tessera/apps/export/onnx"
	"tessera/graph/ops"
	"tessera/layers"
)

// Centre subtracts the mean of each image from its values: y = x - mean(x). It is a user-defined op.
type Centre struct{}

func init() {
	layers.Registry.Register("centre", "subtracts the mean of the image, y = x - mean(x)", func() layers.Layer { return &Centre{} })
}

// OutputShape implements [layers.Layer].
func (*Centre) OutputShape(in []int) ([]int, error) { return in, nil }

// Parameters implements [layers.Layer].
func (*Centre) Parameters([]int) []layers.Parameter { return nil }

// Apply implements [layers.Layer]. The map is linear and symmetric, so that it equals its derivative and its transpose.
func (*Centre) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return ops.Each(x, ops.PerImage{
		Spec:    centring{},
		Out:     x.Shape()[1:],
		Work:    2 * float64(x.Shape()[1:].TotalSize()),
		Float32: centre[float32], Float64: centre[float64],
		Pull32: alongV[float32], Push32: alongV[float32],
		Pull64: alongV[float64], Push64: alongV[float64],
	})
}

// centring names the op.
type centring struct{}

// String implements fmt.Stringer.
func (centring) String() string { return "centre" }

func alongV[T float32 | float64](dst, _, v []T) { centre(dst, v) }

func centre[T float32 | float64](dst, x []T) {
	var sum T
	for _, v := range x {
		sum += v
	}
	mean := sum / T(len(x))
	for i, v := range x {
		dst[i] = v - mean
	}
}

// The op has an ONNX form, so that models with this layer can be exported: x minus its mean over all axes except the batch.
func init() {
	onnx.Define(func(n *onnx.Nodes, _ centring) string {
		axes := make([]int64, n.Axes()-1)
		for i := range axes {
			axes[i] = int64(i + 1)
		}
		mean := n.AddWith([]onnx.Attribute{onnx.IntsOf("axes", axes...), onnx.IntOf("keepdims", 1)}, "ReduceMean", n.Arg(0))
		return n.Add("Sub", n.Arg(0), mean)
	})
}
