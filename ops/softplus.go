package ops

import (
	"math"

	"gorgonia.org/gorgonia"
)

// Softplus returns log(1 + exp(x)), element by element, as max(x,0) + log1p(exp(-|x|)), which neither overflows nor
// loses small values. (Gorgonia's own jumps by exp(-16) where it switches to x.) The derivative is sigmoid(x).
func Softplus(x *gorgonia.Node) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(&op{
		name:  "softplus",
		arity: 1,
		f32:   elementwise(softplus[float32]),
		f64:   elementwise(softplus[float64]),
		derivative: func(x, _, grad *gorgonia.Node) (*gorgonia.Node, error) {
			s, err := gorgonia.Sigmoid(x)
			if err != nil {
				return nil, err
			}
			return gorgonia.HadamardProd(s, grad)
		},
	}, x)
}

func softplus[T Float](x T) T {
	v := float64(x)
	return T(math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
}
