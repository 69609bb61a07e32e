package ops

import (
	"gorgonia.org/gorgonia"
)

// SaturatedOp is the spec of [Saturated].
type SaturatedOp struct{ Share float64 }

// Saturated returns 1 where x is at least share times the largest value of the whole x, and 0 elsewhere. If no value is positive, all
// are 0. NaN is not saturated. The result has no gradient. Multiplying x by a positive number does not change it, up to rounding.
func Saturated(x *gorgonia.Node, share float64) (*gorgonia.Node, error) {
	return Unitwise{
		Spec:    SaturatedOp{share},
		Out:     x.Shape(),
		Units:   1,
		ByUnit:  []bool{true},
		Fixed:   []bool{true},
		Float32: saturated[float32](share),
		Float64: saturated[float64](share),
	}.Apply(x)
}

func saturated[T Float](share float64) units[T] {
	return func(dst []T, in [][]T, _ []T, _, _ int) {
		most := T(0)
		for _, v := range in[0] {
			if v > most {
				most = v
			}
		}
		least := T(share) * most
		for i, v := range in[0] {
			dst[i] = 0
			if v >= least && v > 0 {
				dst[i] = 1
			}
		}
	}
}

// Saturated calls the function [Saturated] and collects its error.
func (c *Chain) Saturated(x *gorgonia.Node, share float64) *gorgonia.Node {
	return c.Do("saturated", func() (*gorgonia.Node, error) { return Saturated(x, share) })
}
