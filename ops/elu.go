package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
)

// EluOp is the spec of [Elu], EluGradOp of its derivative: it maps the output y and g to g where y > 0, and to (y + Alpha)
// g elsewhere.
type (
	EluOp     struct{ Alpha float64 }
	EluGradOp struct{ Alpha float64 }
)

// Elu returns, element by element, x where x > 0 and alpha * (exp(x) - 1) elsewhere, alpha >= 0. The derivative is 1 or y +
// alpha and only needs the output y. At 0 it is alpha; its error is at most one rounding of alpha.
func Elu(x *gorgonia.Node, alpha float64) (*gorgonia.Node, error) {
	if !(alpha >= 0) {
		return nil, fmt.Errorf("elu: alpha: got %v, want >= 0", alpha)
	}
	return Blockwise{
		Spec:    EluOp{alpha},
		Float32: elu(float32(alpha)),
		Float64: elu(alpha),
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(eluGrad(alpha).Apply(y, grad))
		},
	}.Apply(x)
}

func eluGrad(alpha float64) Blockwise {
	return Blockwise{
		Spec:    EluGradOp{alpha},
		Float32: eluSlope(float32(alpha)),
		Float64: eluSlope(alpha),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			y, g := in[0], in[1]
			var c Chain
			bent := c.Do("curvature", func() (*gorgonia.Node, error) { return rampGrad(0, 1).Apply(y, c.Mul(g, grad)) })
			slope := c.Do("slope", func() (*gorgonia.Node, error) { return eluGrad(alpha).Apply(y, grad) })
			return gorgonia.Nodes{bent, slope}, c.Err()
		},
	}
}

func elu[T Float](alpha T) kernel[T] {
	return Map(func(x T) T {
		if x > 0 {
			return x
		}
		return alpha * T(math.Expm1(float64(x)))
	})
}

func eluSlope[T Float](alpha T) kernel[T] {
	return Map2(func(y, g T) T {
		if y > 0 {
			return g
		}
		return (y + alpha) * g
	})
}
