package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// ClipOp is the spec of [Clip], ClipGradOp of its derivative: it maps the input x and g to g where Low <= x <= High, and to
// 0 elsewhere.
type (
	ClipOp     struct{ Low, High float64 }
	ClipGradOp struct{ Low, High float64 }
)

// Clip returns min(max(x, low), high), element by element, low < high. The derivative is 1 from low to high, both ends
// included, and 0 outside. NaN stays NaN.
func Clip(x *gorgonia.Node, low, high float64) (*gorgonia.Node, error) {
	if !(low < high) {
		return nil, fmt.Errorf("clip: got [%v, %v], want low < high", low, high)
	}
	return Blockwise{
		Spec:    ClipOp{low, high},
		Float32: clip(float32(low), float32(high)),
		Float64: clip(low, high),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(clipGrad(low, high).Apply(in[0], grad))
		},
	}.Apply(x)
}

func clipGrad(low, high float64) Blockwise {
	return Blockwise{
		Spec:    ClipGradOp{low, high},
		Float32: window(float32(low), float32(high)),
		Float64: window(low, high),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(clipGrad(low, high).Apply(in[0], grad))
		},
	}
}

func clip[T Float](low, high T) kernel[T] {
	return Map(func(x T) T {
		switch {
		case x < low:
			return low
		case x > high:
			return high
		}
		return x
	})
}

func window[T Float](low, high T) kernel[T] {
	return Map2(func(x, g T) T {
		if x < low || x > high {
			return 0
		}
		return g
	})
}
