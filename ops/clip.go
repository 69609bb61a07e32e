package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// Clip returns min(max(x, low), high), element by element, low < high. The derivative is 1 from low to high, both ends
// included, and 0 outside. NaN stays NaN.
func Clip(x *gorgonia.Node, low, high float64) (*gorgonia.Node, error) {
	if !(low < high) {
		return nil, fmt.Errorf("clip: got [%v, %v], want low < high", low, high)
	}
	return gorgonia.ApplyOp(&op{
		name:  fmt.Sprintf("clip(%v,%v)", low, high),
		arity: 1,
		f32:   clip(float32(low), float32(high)),
		f64:   clip(low, high),
		derivative: func(x, _, grad *gorgonia.Node) (*gorgonia.Node, error) {
			return gorgonia.ApplyOp(clipGrad(low, high), x, grad)
		},
	}, x)
}

// clipGrad maps x and g to g where low <= x <= high and to 0 elsewhere.
func clipGrad(low, high float64) *op {
	return &op{
		name:  fmt.Sprintf("clipGrad(%v,%v)", low, high),
		arity: 2,
		f32:   window(float32(low), float32(high)),
		f64:   window(low, high),
		fixed: []bool{true, false},
		derivatives: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := gorgonia.ApplyOp(clipGrad(low, high), in[0], grad)
			return gorgonia.Nodes{nil, n}, err
		},
	}
}

func clip[T Float](low, high T) kernel[T] {
	return elementwise(func(x T) T {
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
	return elementwise2(func(x, g T) T {
		if x < low || x > high {
			return 0
		}
		return g
	})
}
