package ops

import (
	"gorgonia.org/gorgonia"
)

// Specs of the ops: StopOp of [Stop], StepOp of [Step], GateOp of [Gate]. windowOp is the spec of the estimated
// derivative of Step. It maps z and g to g/Width where |z| < Width/2 and to 0 elsewhere.
type (
	StopOp   struct{}
	StepOp   struct{ Width float64 }
	GateOp   struct{ Width float64 }
	windowOp struct{ Width float64 }
)

// Stop returns x and blocks its gradient.
func Stop(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    StopOp{},
		Float32: Map(func(x float32) float32 { return x }),
		Float64: Map(func(x float64) float64 { return x }),
		Fixed:   []bool{true},
	}.Apply(x)
}

// Stop calls the function [Stop] and collects its error.
func (c *Chain) Stop(x *gorgonia.Node) *gorgonia.Node { return c.unary("stop", Stop, x) }

// Step returns 1 where z > 0 and 0 elsewhere. The true derivative is 0 almost everywhere. The gradient uses an
// estimate, the derivative of a ramp of the given width: 1/width where |z| < width/2, 0 elsewhere.
func Step(z *gorgonia.Node, width float64) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    StepOp{width},
		Float32: Map(positive[float32]),
		Float64: Map(positive[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(windowed(width).Apply(in[0], grad))
		},
	}.Apply(z)
}

// Gate returns x where z > 0 and 0 elsewhere. The derivative with respect to x is exact. The derivative with respect to
// z is an estimate: (x - z) times the estimated derivative of [Step]. For z = x - t with a threshold t, the factor x -
// z is t.
func Gate(x, z *gorgonia.Node, width float64) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    GateOp{width},
		Float32: Map2(gated[float32]),
		Float64: Map2(gated[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			x, z := in[0], in[1]
			open := c.Do("step", func() (*gorgonia.Node, error) { return Step(c.Stop(z), width) })
			window := c.Do("window", func() (*gorgonia.Node, error) { return windowed(width).Apply(z, grad) })
			return gorgonia.Nodes{c.Mul(grad, open), c.Mul(c.Sub(x, z), window)}, c.Err()
		},
	}.Apply(x, z)
}

// windowed returns the op that multiplies its second input by the estimated derivative of a step at its first input.
func windowed(width float64) Blockwise {
	return Blockwise{
		Spec:    windowOp{width},
		Float32: Map2(window2(float32(width))),
		Float64: Map2(window2(width)),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(windowed(width).Apply(in[0], grad))
		},
	}
}

func positive[T Float](z T) T {
	if z > 0 {
		return 1
	}
	return 0
}

func gated[T Float](x, z T) T {
	if z > 0 {
		return x
	}
	return 0
}

func window2[T Float](width T) func(z, g T) T {
	return func(z, g T) T {
		if z < width/2 && z > -width/2 {
			return g / width
		}
		return 0
	}
}
