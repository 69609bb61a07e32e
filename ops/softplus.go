package ops

import (
	"math"

	"gorgonia.org/gorgonia"
)

// SoftplusOp is the spec of [Softplus].
type SoftplusOp struct{}

// Softplus returns log(1 + exp(x)), element by element, as max(x,0) + log1p(exp(-|x|)), which neither overflows nor
// loses small values. (Gorgonia's own jumps by exp(-16) where it switches to x.) The derivative is sigmoid(x).
func Softplus(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    SoftplusOp{},
		Float32: Map(softplus[float32]),
		Float64: Map(softplus[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			s, err := gorgonia.Sigmoid(in[0])
			if err != nil {
				return nil, err
			}
			return one(gorgonia.HadamardProd(s, grad))
		},
	}.Apply(x)
}

func softplus[T Float](x T) T {
	v := float64(x)
	return T(math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
}
