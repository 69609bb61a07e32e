package ops

import (
	"math"

	vector "tessera/kernel"
)

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
