package ops

import (
	"fmt"

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

// StandardiseOp is the spec of [Standardise], StandardiseSlopeOp of J g with inputs x and g, and StandardiseCurveOp of the
// derivative of h·J g with respect to x with inputs x, g and h.
type (
	StandardiseOp struct {
		Places, Channels int // of a block
		Epsilon          float64
	}
	StandardiseSlopeOp StandardiseOp
	StandardiseCurveOp StandardiseOp
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
	o := s.op(StandardiseSlopeOp(s), x, 2)
	o.Float32, o.Float64 = standardiseSlope(s, vector.Float32), standardiseSlope(s, vector.Float64)
	o.Derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(s.curve(in[0], in[1], grad))(s.slope(in[0], grad))
	}
	return o.Apply(x, g)
}

// curve returns the derivative of h·J g with respect to x. With m places and r = 1/sqrt(variance + epsilon) it is -r/m (r a
// y + (y·g) J h + (y·h) J g), where a = g·h - m mean(g) mean(h) - (y·g)(y·h)/m.
func (s StandardiseOp) curve(x, g, h *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op(StandardiseCurveOp(s), x, 3)
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
