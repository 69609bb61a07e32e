package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
	vector "tessera/kernel"
)

// Standardise shifts and scales the values of every channel of every block of x to mean 0 and variance 1. x is viewed as
// (blocks, places, channels); for the values z of one channel of a block
//
//	y = (z - mean(z)) / sqrt(variance(z) + epsilon)
//
// with the biased variance. The derivative with respect to z maps g to J g = (g - mean(g) - y mean(y g)) / sqrt(variance(z) + epsilon); J is symmetric.
func Standardise(x *gorgonia.Node, places, channels int, epsilon float64) (*gorgonia.Node, error) {
	if len(x.Shape()) < 1 || places < 1 || channels < 1 || x.Shape().TotalSize()%(places*channels) != 0 || !(epsilon > 0) {
		return nil, fmt.Errorf("standardise: shape %v does not divide into blocks of %d places and %d channels, or epsilon %v is not > 0",
			x.Shape(), places, channels, epsilon)
	}
	return StandardiseOp{places, channels, epsilon}.value(x)
}

// StandardiseOp is the spec of [Standardise], standardiseSlopeOp of J g with inputs x and g, and standardiseCurveOp of the
// derivative of h·J g with respect to x with inputs x, g and h.
type (
	StandardiseOp struct {
		Places, Channels int // of a block
		Epsilon          float64
	}
	standardiseSlopeOp StandardiseOp
	standardiseCurveOp StandardiseOp
)

func (s StandardiseOp) value(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(s, x, 1)
	o.Float32, o.Float64 = standardise(s, vector.Float32), standardise(s, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return one(s.slope(in[0], grad))
	}
	return o.Apply(x)
}

// slope returns J g at x.
func (s StandardiseOp) slope(x, g *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(standardiseSlopeOp(s), x, 2)
	o.Float32, o.Float64 = standardiseSlope(s, vector.Float32), standardiseSlope(s, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(s.curve(in[0], in[1], grad))(s.slope(in[0], grad))
	}
	return o.Apply(x, g)
}

// curve returns the derivative of h·J g with respect to x. With m places and r = 1/sqrt(variance + epsilon) it is -r/m (r a
// y + (y·g) J h + (y·h) J g), where a = g·h - m mean(g) mean(h) - (y·g)(y·h)/m.
func (s StandardiseOp) curve(x, g, h *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(standardiseCurveOp(s), x, 3)
	o.Float32, o.Float64 = standardiseCurve(s, vector.Float32), standardiseCurve(s, vector.Float64)
	return o.Apply(x, g, h)
}

// op contains the common fields of the ops: a unit is a block of every input.
func (s StandardiseOp) op(spec any, x *gorgonia.Node, inputs int) *Unitwise {
	o := &Unitwise{
		Spec:     spec,
		Out:      x.Shape().Clone(),
		Units:    x.Shape().TotalSize() / (s.Places * s.Channels),
		Scratch:  4 * s.Places,
		Division: ir.ByUnits,
		Work:     float64(4 * inputs * x.Shape().TotalSize()),
	}
	for range inputs {
		o.ByUnit = append(o.ByUnit, true)
	}
	return o
}

// channel contains the values of one channel of a block and working memory, contiguously.
type channel[T Float] struct {
	k *vector.Set[T]
	y []T // the values, standardised
	r T   // 1 / sqrt(variance + epsilon)
	t []T
	// of the other inputs
	g, h []T
}

// take copies every stride-th value of x.
func take[T Float](dst, x []T, stride int) {
	if stride == 1 {
		copy(dst, x)
		return
	}
	for i := range dst {
		dst[i] = x[i*stride]
	}
}

// give is the inverse of take.
func give[T Float](dst, x []T, stride int) {
	if stride == 1 {
		copy(dst, x)
		return
	}
	for i, v := range x {
		dst[i*stride] = v
	}
}

// standardised turns the channel's values into y and r.
func (c *channel[T]) standardised(epsilon float64) {
	m := T(len(c.y))
	c.k.AddScalar(c.y, c.y, -c.k.Sum(c.y)/m)
	c.r = T(1 / math.Sqrt(float64(c.k.SumSquares(c.y)/m)+epsilon))
	c.k.MulScalar(c.y, c.y, c.r)
}

// slope writes J g.
func (c *channel[T]) slope(dst, g []T) {
	m := T(len(g))
	mean, dot := c.k.Sum(g)/m, c.k.Dot(c.y, g)/m
	c.k.AddScalar(dst, g, -mean)
	c.k.AddScaled(dst, dst, c.y, -dot)
	c.k.MulScalar(dst, dst, c.r)
}

// curve writes the derivative of h·J g with respect to the values; it overwrites g and h.
func (c *channel[T]) curve(dst []T) {
	m := T(len(c.y))
	yg, yh := c.k.Dot(c.y, c.g), c.k.Dot(c.y, c.h)
	a := c.k.Dot(c.g, c.h) - c.k.Sum(c.g)*c.k.Sum(c.h)/m - yg*yh/m
	c.slope(c.g, c.g)
	c.slope(c.h, c.h)
	c.k.MulScalar(dst, c.y, c.r*a)
	c.k.AddScaled(dst, dst, c.h, yg)
	c.k.AddScaled(dst, dst, c.g, yh)
	c.k.MulScalar(dst, dst, -c.r/m)
}

// standardUnits computes blocks: f maps a channel to the channel of the output.
func standardUnits[T Float](s StandardiseOp, kernels func() *vector.Set[T], f func(c channel[T]) []T) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		line := func(i int) []T { return scratch[i*s.Places : (i+1)*s.Places] }
		c := channel[T]{k: kernels(), y: line(0), t: line(1), g: line(2), h: line(3)}
		for at := from * s.Places * s.Channels; at < to*s.Places*s.Channels; at += s.Places * s.Channels {
			for i := at; i < at+s.Channels; i++ {
				for j, values := range [][]T{c.y, c.g, c.h}[:len(in)] {
					take(values, in[j][i:], s.Channels)
				}
				c.standardised(s.Epsilon)
				give(dst[i:], f(c), s.Channels)
			}
		}
	}
}

func standardise[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, func(c channel[T]) []T { return c.y })
}

func standardiseSlope[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, func(c channel[T]) []T {
		c.slope(c.t, c.g)
		return c.t
	})
}

func standardiseCurve[T Float](s StandardiseOp, kernels func() *vector.Set[T]) units[T] {
	return standardUnits(s, kernels, func(c channel[T]) []T {
		c.curve(c.t)
		return c.t
	})
}
