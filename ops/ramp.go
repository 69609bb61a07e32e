package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	vector "tessera/kernel"
)

// Ramp returns, element by element, above * x where x > 0 and below * x elsewhere: relu is Ramp(x, 1, 0), a leaky relu
// Ramp(x, 1, slope), max(-x, 0) is Ramp(x, 0, -1). The derivative at 0 is below.
func Ramp(x *gorgonia.Node, above, below float64) (*gorgonia.Node, error) {
	return gorgonia.ApplyOp(&op{
		name:  fmt.Sprintf("ramp(%v,%v)", above, below),
		arity: 1,
		f32:   fastRamp(float32(above), float32(below)),
		f64:   ramp(above, below),
		derivative: func(x, y, grad *gorgonia.Node) (*gorgonia.Node, error) {
			if above == 1 && below >= 0 {
				x = y // y > 0 just where x > 0: nothing needs x any more, which may be overwritten
			}
			return gorgonia.ApplyOp(rampGrad(above, below), x, grad)
		},
	}, x)
}

// rampGrad maps x and g to above * g where x > 0 and to below * g elsewhere.
func rampGrad(above, below float64) *op {
	return &op{
		name:  fmt.Sprintf("rampGrad(%v,%v)", above, below),
		arity: 2,
		f32:   fastGate(float32(above), float32(below)),
		f64:   gate(above, below),
		fixed: []bool{true, false},
		derivatives: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := gorgonia.ApplyOp(rampGrad(above, below), in[0], grad)
			return gorgonia.Nodes{nil, n}, err
		},
	}
}

// fastRamp is ramp by the vector kernels where they have it.
func fastRamp(above, below float32) kernel[float32] {
	switch {
	case above != 1:
		return ramp(above, below)
	case below == 0:
		return func(dst []float32, in [][]float32, _ int) { vector.Float32().MaxScalar(dst, in[0], 0) }
	}
	return func(dst []float32, in [][]float32, _ int) { vector.Float32().LeakyReLU(dst, in[0], below) }
}

// fastGate is gate by the vector kernels where they have it.
func fastGate(above, below float32) kernel[float32] {
	if above != 1 {
		return gate(above, below)
	}
	return func(dst []float32, in [][]float32, _ int) { vector.Float32().LeakyReLUGrad(dst, in[1], in[0], below) }
}

func ramp[T Float](above, below T) kernel[T] {
	return elementwise(func(x T) T {
		if x > 0 {
			return above * x
		}
		return below*x + 0 // + 0: no negative zeros
	})
}

func gate[T Float](above, below T) kernel[T] {
	return elementwise2(func(x, g T) T {
		if x > 0 {
			return above * g
		}
		return below*g + 0
	})
}
