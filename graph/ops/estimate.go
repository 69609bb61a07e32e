package ops

import (
	"math"

	"gorgonia.org/gorgonia"
)

// Specs of the ops: StopOp of [Stop], StepOp of [Step], GateOp of [Gate]. windowOp is the spec of the estimated
// derivative of Step. It maps z and g to the product of g and the window at z.
type (
	StopOp   struct{}
	StepOp   struct{ Window }
	GateOp   struct{ Window }
	windowOp struct{ Window }
)

// Window is an estimate of the derivative of a step at 0, with the area 1 and the height 1/Width: 1/Width where |z| < Width/2
// and 0 elsewhere or, if it is smooth, the derivative of (1 + tanh(2 z/Width))/2.
type Window struct {
	Width  float64
	Smooth bool
}

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

// Step returns 1 where z > 0 and 0 elsewhere. The true derivative is 0 almost everywhere. The gradient uses the estimate w.
func Step(z *gorgonia.Node, w Window) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    StepOp{w},
		Sparse:  true,
		Float32: Map(positive[float32]),
		Float64: Map(positive[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(windowed(w).Apply(in[0], grad))
		},
	}.Apply(z)
}

// Gate returns x where z > 0 and 0 elsewhere. The derivative with respect to x is exact. The derivative with respect to
// z is an estimate: (x - z) times the estimated derivative of [Step]. For z = x - t with a threshold t, the factor x -
// z is t.
func Gate(x, z *gorgonia.Node, w Window) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    GateOp{w},
		Sparse:  true,
		Float32: Map2(gated[float32]),
		Float64: Map2(gated[float64]),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			x, z := in[0], in[1]
			open := c.Do("step", func() (*gorgonia.Node, error) { return Step(c.Stop(z), w) })
			window := c.Do("window", func() (*gorgonia.Node, error) { return windowed(w).Apply(z, grad) })
			return gorgonia.Nodes{c.Mul(grad, open), c.Mul(c.Sub(x, z), window)}, c.Err()
		},
	}.Apply(x, z)
}

// windowed returns the op that multiplies its second input by the estimated derivative of a step at its first input.
func windowed(w Window) Blockwise {
	return Blockwise{
		Spec:    windowOp{w},
		Float32: Map2(window2[float32](w)),
		Float64: Map2(window2[float64](w)),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(windowed(w).Apply(in[0], grad))
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

func window2[T Float](w Window) func(z, g T) T {
	width := T(w.Width)
	if w.Smooth {
		return func(z, g T) T {
			c := math.Cosh(2 * float64(z/width))
			return g / width / T(c*c)
		}
	}
	return func(z, g T) T {
		if z < width/2 && z > -width/2 {
			return g / width
		}
		return 0
	}
}
