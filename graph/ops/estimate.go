package ops

import (
	"math"

	"gorgonia.org/gorgonia"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// Specs of the ops: stopOp of [Stop], StepOp of [Step], GateOp of [Gate]. The others belong to derivatives: windowOp maps z and g to
// the product of g and the window at z, leverOp maps x, z and g to this product times x - z, openOp maps z, maybe y, and g to g
// where z > 0 or, if it is Wide, where z is also no window below, and to 0 elsewhere.
type (
	stopOp   struct{}
	StepOp   struct{ Window }
	GateOp   struct{ Window }
	windowOp struct{ Window }
	leverOp  struct{ Window }
	openOp   struct {
		Window
		Wide bool
	}
)

// Window is an estimate of the derivative of a step at 0, with the area 1 and the height 1/Width: 1/Width where |z| < Width/2
// and 0 elsewhere or, if it is smooth, the derivative of (1 + tanh(2 z/Width))/2. With a width of 0 there is no estimate.
type Window struct {
	Width  float64
	Smooth bool
}

// Stop returns x and blocks its gradient.
func Stop(x *gorgonia.Node) (*gorgonia.Node, error) {
	return same(stopOp{}, ir.Pointwise{F: ir.Copy}, x, x.Shape(), []bool{true}, nil)
}

// Stop calls the function [Stop] and collects its error.
func (c *Chain) Stop(x *gorgonia.Node) *gorgonia.Node { return c.unary("stop", Stop, x) }

// Step returns 1 where z > 0 and 0 elsewhere. The true derivative is 0 almost everywhere. The gradient uses the estimate w.
func Step(z *gorgonia.Node, w Window) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    StepOp{w},
		Sparse:  true,
		Float32: func(dst []float32, in [][]float32, _ int) { vector.Float32().GtScalar(dst, in[0], 0) },
		Float64: func(dst []float64, in [][]float64, _ int) { vector.Float64().GtScalar(dst, in[0], 0) },
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(windowed(w).Apply(in[0], grad))
		},
	}.Apply(z)
}

// Gate returns x where z > 0 and 0 elsewhere. The derivative with respect to x is exact. The derivative with respect to
// z is an estimate: (x - z) times the estimated derivative of [Step]; without a window there is none. For z = x - t with a
// threshold t, the factor x - z is t.
func Gate(x, z *gorgonia.Node, w Window) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    GateOp{w},
		Rows:    len(x.Shape()) == 2,
		Sparse:  true,
		Float32: Map2(gated[float32](0)),
		Float64: Map2(gated[float64](0)),
		Fixed:   []bool{w.Width == 0, false},
		Selects: &ir.Selection{Float32: above(0, vector.Float32), Float64: above(0, vector.Float64)},
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			z, x := in[0], in[1]
			if w.Width == 0 {
				toX, err := open(w, false).Apply(z, y, grad)
				return gorgonia.Nodes{nil, toX}, err
			}
			var c Chain
			near := c.Do("near", func() (*gorgonia.Node, error) { return open(w, true).Apply(z, grad) })
			toX := c.Do("open", func() (*gorgonia.Node, error) { return open(w, false).Apply(z, y, near) })
			toZ := c.Do("lever", func() (*gorgonia.Node, error) { return lever(w).Apply(x, z, near) })
			return gorgonia.Nodes{toZ, toX}, c.Err()
		},
	}.Apply(z, x)
}

// open returns the op of openOp. The one that is not wide has y, the result of the gate, as its second argument: it has kept the
// same elements.
func open(w Window, wide bool) Blockwise {
	b := Blockwise{
		Spec:    openOp{w, wide},
		Rows:    true,
		Sparse:  true,
		Float32: passed(-reach[float32](w, wide)),
		Float64: passed(-reach[float64](w, wide)),
		Fixed:   []bool{true, true, false},
		Selects: &ir.Selection{Float32: above(-reach[float32](w, wide), vector.Float32), Float64: above(-reach[float64](w, wide), vector.Float64), Like: 1},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			list := make(gorgonia.Nodes, len(in))
			var err error
			list[len(in)-1], err = open(w, wide).Apply(append(in[:len(in)-1:len(in)-1], grad)...)
			return list, err
		},
	}
	if wide {
		b.Fixed, b.Selects.Like = b.Fixed[1:], 0
	}
	return b
}

// reach returns the distance below 0 from which on a window is 0.
func reach[T Float](w Window, wide bool) T {
	switch _, single := any(T(0)).(float32); {
	case !wide:
		return 0
	case !w.Smooth:
		return T(w.Width) / 2
	case single:
		return T(23 * w.Width) // cosh²(46) is infinite
	default:
		return T(178 * w.Width)
	}
}

// passed copies the last input where the first one exceeds the bound, and writes 0 elsewhere.
func passed[T Float](bound T) kernel[T] {
	of := Map2(gated(bound))
	return func(dst []T, in [][]T, block int) { of(dst, [][]T{in[0], in[len(in)-1]}, block) }
}

// above returns a constructor of functions that list the elements of a row that exceed the bound, in ascending order.
func above[T Float](bound T, kernels func() *vector.Set[T]) func(block, most int) func(row [][]T) []int {
	return func(block, most int) func(row [][]T) []int {
		maximum, list := kernels().Maximum, make([]int, most+piece)
		return func(row [][]T) []int {
			n := 0
			for start := 0; start < block && n <= most; start += piece {
				part := row[0][start:min(start+piece, block)]
				if maximum(part) <= bound { // false for a NaN
					continue
				}
				for j, v := range part {
					list[n] = start + j
					if v > bound { // computed without a branch
						n++
					}
				}
			}
			return list[:n]
		}
	}
}

// lever returns the op of leverOp.
func lever(w Window) Blockwise {
	return Blockwise{
		Spec:       leverOp{w},
		Float32:    levered[float32](w),
		Float64:    levered[float64](w),
		KeepsZeros: true,
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			x, z, g := in[0], in[1], in[2]
			toX := c.Do("window", func() (*gorgonia.Node, error) { return windowed(w).Apply(z, c.Mul(g, grad)) })
			toG := c.Do("lever", func() (*gorgonia.Node, error) { return lever(w).Apply(x, z, grad) })
			return gorgonia.Nodes{toX, c.Neg(toX), toG}, c.Err()
		},
	}
}

func levered[T Float](w Window) kernel[T] {
	of := window2[T](w)
	return func(dst []T, in [][]T, _ int) {
		x, z := in[0][:len(dst)], in[1][:len(dst)]
		for i, g := range in[2][:len(dst)] {
			if g == 0 {
				dst[i] = 0 // even if the other values are not finite
			} else {
				dst[i] = (x[i] - z[i]) * of(z[i], g)
			}
		}
	}
}

// windowed returns the op that multiplies its second input by the estimated derivative of a step at its first input.
func windowed(w Window) Blockwise {
	return Blockwise{
		Spec:    windowOp{w},
		Float32: windows[float32](w),
		Float64: windows[float64](w),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(windowed(w).Apply(in[0], grad))
		},
	}
}

// gated returns the function x where z > bound, 0 elsewhere.
func gated[T Float](bound T) func(z, x T) T {
	return func(z, x T) T {
		if z > bound {
			return x
		}
		return 0
	}
}

func windows[T Float](w Window) kernel[T] {
	if w.Smooth {
		return Map2(window2[T](w))
	}
	width := T(w.Width)
	return func(dst []T, in [][]T, _ int) {
		second := in[1][:len(dst)]
		for i, z := range in[0][:len(dst)] {
			if z < width/2 && z > -width/2 {
				dst[i] = second[i] / width
			} else {
				dst[i] = 0
			}
		}
	}
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
