package ops

import (
	"gorgonia.org/gorgonia"
	vector "tessera/kernel"
)

// RampOp is the spec of [Ramp], RampGradOp of its derivative: it maps x and g to Above g where x > 0, and to Below g
// elsewhere.
type (
	RampOp     struct{ Above, Below float64 }
	RampGradOp struct{ Above, Below float64 }
)

// Ramp returns, element by element, above * x where x > 0 and below * x elsewhere: relu is Ramp(x, 1, 0), a leaky relu
// Ramp(x, 1, slope), max(-x, 0) is Ramp(x, 0, -1). The derivative at 0 is below.
func Ramp(x *gorgonia.Node, above, below float64) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    RampOp{above, below},
		Float32: fastRamp(float32(above), float32(below)),
		Float64: ramp(above, below),
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			x := in[0]
			if above == 1 && below >= 0 {
				x = y // y > 0 if and only if x > 0: x is not needed any more and may be overwritten
			}
			return one(rampGrad(above, below).Apply(x, grad))
		},
	}.Apply(x)
}

func rampGrad(above, below float64) Blockwise {
	return Blockwise{
		Spec:    RampGradOp{above, below},
		Float32: fastGate(float32(above), float32(below)),
		Float64: gate(above, below),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(rampGrad(above, below).Apply(in[0], grad))
		},
	}
}

// fastRamp is ramp with vector kernels, if available.
func fastRamp(above, below float32) kernel[float32] {
	switch {
	case above != 1:
		return ramp(above, below)
	case below == 0:
		return func(dst []float32, in [][]float32, _ int) { vector.Float32().MaxScalar(dst, in[0], 0) }
	}
	return func(dst []float32, in [][]float32, _ int) { vector.Float32().LeakyReLU(dst, in[0], below) }
}

// fastGate is gate with vector kernels, if available.
func fastGate(above, below float32) kernel[float32] {
	if above != 1 {
		return gate(above, below)
	}
	return func(dst []float32, in [][]float32, _ int) { vector.Float32().LeakyReLUGrad(dst, in[1], in[0], below) }
}

func ramp[T Float](above, below T) kernel[T] {
	return Map(func(x T) T {
		if x > 0 {
			return above * x
		}
		return below*x + 0 // + 0: no negative zeros
	})
}

func gate[T Float](above, below T) kernel[T] {
	return Map2(func(x, g T) T {
		if x > 0 {
			return above * g
		}
		return below*g + 0
	})
}
