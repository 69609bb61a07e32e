package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// WeighOp is the spec of [Weigh].
type WeighOp struct{ Weights []float64 }

// Weigh multiplies column j of x (n, m) by the constant weights[j]. The derivative is the same op.
func Weigh(x *gorgonia.Node, weights []float64) (*gorgonia.Node, error) {
	if s := x.Shape(); len(s) != 2 || s[1] != len(weights) {
		return nil, fmt.Errorf("weigh: got shape %v, want (n, %d), a column for each weight", s, len(weights))
	}
	return weigh(slices.Clone(weights)).Apply(x)
}

func weigh(weights []float64) Blockwise {
	return Blockwise{
		Spec:    WeighOp{weights},
		Rows:    true,
		Float32: weighRows[float32](weights),
		Float64: weighRows[float64](weights),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(weigh(weights).Apply(grad))
		},
	}
}

func weighRows[T Float](weights []float64) kernel[T] {
	return func(dst []T, in [][]T, block int) {
		for at := 0; at < len(dst); at += block {
			for j, w := range weights {
				dst[at+j] = in[0][at+j] * T(w)
			}
		}
	}
}
