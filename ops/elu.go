package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
)

// Elu returns, element by element, x where x > 0 and alpha * (exp(x) - 1) elsewhere, alpha >= 0. The derivative is 1 or
// y + alpha, so that nothing but the output y is needed for it; at 0 it is alpha, and its error is at most one rounding
// of alpha.
func Elu(x *gorgonia.Node, alpha float64) (*gorgonia.Node, error) {
	if !(alpha >= 0) {
		return nil, fmt.Errorf("elu: alpha: got %v, want >= 0", alpha)
	}
	return gorgonia.ApplyOp(&op{
		name:  fmt.Sprintf("elu(%v)", alpha),
		arity: 1,
		f32:   elu(float32(alpha)),
		f64:   elu(alpha),
		derivative: func(_, y, grad *gorgonia.Node) (*gorgonia.Node, error) {
			return gorgonia.ApplyOp(eluGrad(alpha), y, grad)
		},
	}, x)
}

// eluGrad maps the output y and g to g where y > 0 and to (y + alpha) * g elsewhere.
func eluGrad(alpha float64) *op {
	return &op{
		name:  fmt.Sprintf("eluGrad(%v)", alpha),
		arity: 2,
		f32:   eluSlope(float32(alpha)),
		f64:   eluSlope(alpha),
		derivatives: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			y, g := in[0], in[1]
			var c Chain
			bent := c.Do("curvature", func() (*gorgonia.Node, error) { return gorgonia.ApplyOp(rampGrad(0, 1), y, c.Mul(g, grad)) })
			slope := c.Do("slope", func() (*gorgonia.Node, error) { return gorgonia.ApplyOp(eluGrad(alpha), y, grad) })
			return gorgonia.Nodes{bent, slope}, c.Err()
		},
	}
}

func elu[T Float](alpha T) kernel[T] {
	return elementwise(func(x T) T {
		if x > 0 {
			return x
		}
		return alpha * T(math.Expm1(float64(x)))
	})
}

func eluSlope[T Float](alpha T) kernel[T] {
	return elementwise2(func(y, g T) T {
		if y > 0 {
			return g
		}
		return (y + alpha) * g
	})
}
