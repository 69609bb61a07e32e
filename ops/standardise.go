package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	vector "tessera/kernel"
)

// Standardise shifts and scales the values of every channel of every block of x, whose elements are taken as (blocks,
// places, channels), to mean 0 and variance 1, for z over the places of one channel:
//
//	y = (z - mean(z)) / sqrt(variance(z) + epsilon)
//
// with the biased variance. The derivative with respect to z maps g to J g = (g - mean(g) - y mean(y g)) / sqrt(variance(z) + epsilon); J is symmetric.
func Standardise(x *gorgonia.Node, places, channels int, epsilon float64) (*gorgonia.Node, error) {
	if len(x.Shape()) < 1 || places < 1 || channels < 1 || x.Shape().TotalSize()%(places*channels) != 0 || !(epsilon > 0) {
		return nil, fmt.Errorf("standardise: shape %v does not divide into blocks of %d places and %d channels, or epsilon %v is not > 0",
			x.Shape(), places, channels, epsilon)
	}
	return standard{places: places, channels: channels, epsilon: epsilon}.value(x)
}

// standard is the shape of a block.
type standard struct {
	places, channels int
	epsilon          float64
}

func (s standard) value(x *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op("standardise", x, 1)
	o.f32, o.f64 = standardise(s, vector.Float32), standardise(s, vector.Float64)
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return one(s.slope(in[0], grad))
	}
	return o.apply(x)
}

// slope returns J g at x.
func (s standard) slope(x, g *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op("standardiseSlope", x, 2)
	o.f32, o.f64 = standardiseSlope(s, vector.Float32), standardiseSlope(s, vector.Float64)
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return both(s.curve(in[0], in[1], grad))(s.slope(in[0], grad))
	}
	return o.apply(x, g)
}

// curve returns the derivative of h·J g with respect to x, which J depends on. With m places and r = 1/sqrt(variance +
// epsilon) it is -r/m (r a y + (y·g) J h + (y·h) J g), where a = g·h - m mean(g) mean(h) - (y·g)(y·h)/m.
func (s standard) curve(x, g, h *gorgonia.Node) (*gorgonia.Node, error) {
	o := s.op("standardiseCurve", x, 3)
	o.f32, o.f64 = standardiseCurve(s, vector.Float32), standardiseCurve(s, vector.Float64)
	return o.apply(x, g, h)
}

// op is what the ops have in common: a unit is a block, of all inputs alike.
func (s standard) op(name string, x *gorgonia.Node, inputs int) *parallel {
	o := &parallel{
		name:    fmt.Sprintf("%s%+v", name, s),
		out:     x.Shape().Clone(),
		units:   x.Shape().TotalSize() / (s.places * s.channels),
		scratch: 4 * s.places,
		work:    float64(4 * inputs * x.Shape().TotalSize()),
	}
	for range inputs {
		o.byUnit = append(o.byUnit, true)
	}
	return o
}
