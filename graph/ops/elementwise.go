package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	vector "tessera/internal/engine/kernel"
)

// RampOp is the spec of [Ramp]. rampGradOp is the spec of its derivative: it maps x and g to Above g where x > 0, and to
// Below g elsewhere.
type (
	RampOp     struct{ Above, Below float64 }
	rampGradOp struct{ Above, Below float64 }
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
				x = y // y > 0 if and only if x > 0: so the gradient can read y, and x may be overwritten
			}
			return gradientOf(rampGrad(above, below).Apply(x, grad))
		},
	}.Apply(x)
}

func rampGrad(above, below float64) Blockwise {
	return Blockwise{
		Spec:    rampGradOp{above, below},
		Float32: fastGate(float32(above), float32(below)),
		Float64: gate(above, below),
		Fixed:   []bool{true, false},

		KeepsZeros: true,
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(rampGrad(above, below).Apply(in[0], grad))
		},
	}
}

// fastRamp is ramp with a vector kernel if there is one for these slopes.
func fastRamp(above, below float32) kernel[float32] {
	switch {
	case above != 1:
		return ramp(above, below)
	case below == 0:
		return func(dst []float32, in [][]float32, _ int) { vector.Float32().MaxScalar(dst, in[0], 0) }
	}
	return func(dst []float32, in [][]float32, _ int) { vector.Float32().LeakyReLU(dst, in[0], below) }
}

// fastGate is gate with a vector kernel if there is one for these slopes.
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
		return below*x + 0 // adding 0 turns -0 into 0
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

// ClipOp is the spec of [Clip]. clipGradOp is the spec of its derivative: it maps the input x and g to g where Low <= x <=
// High, and to 0 elsewhere.
type (
	ClipOp     struct{ Low, High float64 }
	clipGradOp struct{ Low, High float64 }
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
			return gradientOf(clipGrad(low, high).Apply(in[0], grad))
		},
	}.Apply(x)
}

func clipGrad(low, high float64) Blockwise {
	return Blockwise{
		Spec:    clipGradOp{low, high},
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

// EluOp is the spec of [Elu]. eluGradOp is the spec of its derivative: it maps the output y and g to g where y > 0, and to (y
// + Alpha) g elsewhere.
type (
	EluOp     struct{ Alpha float64 }
	eluGradOp struct{ Alpha float64 }
)

// Elu returns, element by element, x where x > 0 and alpha * (exp(x) - 1) elsewhere, alpha >= 0. The derivative is 1
// where x > 0 and y + alpha elsewhere; it is computed from the output y. At 0 the derivative is alpha. Its error is at
// most one rounding of alpha.
func Elu(x *gorgonia.Node, alpha float64) (*gorgonia.Node, error) {
	if !(alpha >= 0) {
		return nil, fmt.Errorf("elu: alpha: got %v, want >= 0", alpha)
	}
	return Blockwise{
		Spec:    EluOp{alpha},
		Float32: elu(float32(alpha)),
		Float64: elu(alpha),
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(eluGrad(alpha).Apply(y, grad))
		},
	}.Apply(x)
}

func eluGrad(alpha float64) Blockwise {
	return Blockwise{
		Spec:    eluGradOp{alpha},
		Float32: eluSlope(float32(alpha)),
		Float64: eluSlope(alpha),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			y, g := in[0], in[1]
			var c Chain
			bent := c.Do("curvature", func() (*gorgonia.Node, error) { return rampGrad(0, 1).Apply(y, c.Mul(g, grad)) })
			slope := c.Do("slope", func() (*gorgonia.Node, error) { return eluGrad(alpha).Apply(y, grad) })
			return gorgonia.Nodes{bent, slope}, c.Err()
		},
	}
}

func elu[T Float](alpha T) kernel[T] {
	return Map(func(x T) T {
		if x > 0 {
			return x
		}
		return alpha * T(math.Expm1(float64(x)))
	})
}

func eluSlope[T Float](alpha T) kernel[T] {
	return Map2(func(y, g T) T {
		if y > 0 {
			return g
		}
		return (y + alpha) * g
	})
}

// NormalCDFOp is the spec of [NormalCDF], normalPDFOp the spec of its derivative.
type (
	NormalCDFOp struct{}
	normalPDFOp struct{}
)

// NormalCDF returns the distribution function of N(0,1), element by element: (1 + erf(x/sqrt 2))/2. It can be differentiated
// any number of times.
func NormalCDF(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    NormalCDFOp{},
		Float32: func(dst []float32, in [][]float32, _ int) { vector.Float32().NormalCDF(dst, in[0]) },
		Float64: func(dst []float64, in [][]float64, _ int) { vector.Float64().NormalCDF(dst, in[0]) },
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			density := c.Do("density", func() (*gorgonia.Node, error) { return normalPDF(in[0]) })
			return gorgonia.Nodes{c.Mul(density, grad)}, c.Err()
		},
	}.Apply(x)
}

// normalPDF returns the density of N(0,1), element by element: exp(-x²/2)/sqrt(2 pi).
func normalPDF(x *gorgonia.Node) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    normalPDFOp{},
		Float32: func(dst []float32, in [][]float32, _ int) { vector.Float32().NormalPDF(dst, in[0]) },
		Float64: func(dst []float64, in [][]float64, _ int) { vector.Float64().NormalPDF(dst, in[0]) },
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			return gorgonia.Nodes{c.Neg(c.Mul(c.Mul(in[0], y), grad))}, c.Err()
		},
	}.Apply(x)
}

// SoftplusOp is the spec of [Softplus].
type SoftplusOp struct{}

// Softplus returns log(1 + exp(x)), element by element, as max(x,0) + log1p(exp(-|x|)), which neither overflows nor
// loses small values. (Gorgonia's Softplus jumps by exp(-16) where it switches to x.) The derivative is sigmoid(x).
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
			return gradientOf(gorgonia.HadamardProd(s, grad))
		},
	}.Apply(x)
}

func softplus[T Float](x T) T {
	v := float64(x)
	return T(math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
}
