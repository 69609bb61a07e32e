package ops

import (
	"math"

	"gorgonia.org/gorgonia"
)

// NormalCDFOp is the spec of [NormalCDF], NormalPDFOp that of its derivative.
type (
	NormalCDFOp struct{}
	NormalPDFOp struct{}
)

// NormalCDF returns the distribution function of N(0,1), element by element: (1 + erf(x/sqrt 2))/2. It may be differentiated
// any number of times.
func NormalCDF(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    NormalCDFOp{},
		Float32: Map(normalCDF[float32]),
		Float64: Map(normalCDF[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			density := c.Do("density", func() (*gorgonia.Node, error) { return normalPDF(in[0]) })
			return gorgonia.Nodes{c.Mul(density, grad)}, c.Err()
		},
	}.Apply(x)
}

// normalPDF returns the density of N(0,1), element by element: exp(-x²/2)/sqrt(2 pi).
func normalPDF(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    NormalPDFOp{},
		Float32: Map(normalDensity[float32]),
		Float64: Map(normalDensity[float64]),
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			return gorgonia.Nodes{c.Neg(c.Mul(c.Mul(in[0], y), grad))}, c.Err()
		},
	}.Apply(x)
}

func normalCDF[T Float](x T) T { return T(math.Erfc(-float64(x)/math.Sqrt2) / 2) }

func normalDensity[T Float](x T) T {
	v := float64(x)
	return T(math.Exp(-v*v/2) / math.Sqrt(2*math.Pi))
}
