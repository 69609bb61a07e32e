package main

import (
	"math"
	"testing"

	"tessera/attack"
)

// The distances of images from the boundary are known in one dimension. Between the radii, the median is interpolated from the
// curve.
func TestDistanceIsTheMedianOfCorrectImages(t *testing.T) {
	b := ball{norm: attack.L2, radii: []float64{0.5, 1, 2}}
	for _, c := range []struct {
		curve []float64
		want  float64
	}{
		{[]float64{0.6, 0.4, 0}, 1},             // at a radius
		{[]float64{0.7, 0.3, 0}, 0.875},         // between two radii
		{[]float64{0.2, 0, 0}, 0.5 / 1.5},       // below the first radius: the curve begins at 1
		{[]float64{0.8, 0.7, 0.5}, math.Inf(1)}, // beyond the last one
	} {
		m := &measured{Clean: 0.8, Curves: map[attack.Norm][]float64{attack.L2: c.curve}}
		if got := m.distance(b); got != c.want && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: got %v, want %v", c.curve, got, c.want)
		}
	}
}
