package table

import (
	"math"
	"testing"
)

func TestWantTags(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		want    string
		yes, no []float64
	}{
		{"", []float64{0, -1, inf}, []float64{inf - inf}},
		{"> 0", []float64{5e-324}, []float64{0, -1, inf, inf - inf}},
		{">= 0", []float64{0, 1}, []float64{-5e-324, inf}},
		{"< 2", []float64{1.9}, []float64{2, -inf}},
		{"<= 2", []float64{2}, []float64{2.1}},
		{"in (0,1)", []float64{0.5}, []float64{0, 1}},
		{"in [0,1)", []float64{0}, []float64{1, -1}},
		{"in (-1,1]", []float64{0, 1}, []float64{-1, 2, inf - inf}},
		{"in [0,1]", []float64{0, 1}, []float64{1.1}},
	} {
		for _, v := range c.yes {
			if b := boundsOf(c.want); !b.hold(v) || b.malformed != nil {
				t.Errorf("%g does not satisfy %q: %v", v, c.want, b.malformed)
			}
		}
		for _, v := range c.no {
			if b := boundsOf(c.want); b.hold(v) || b.malformed != nil {
				t.Errorf("%g satisfies %q: %v", v, c.want, b.malformed)
			}
		}
	}
	for _, malformed := range []string{">", "over 3", "in 0,1", "in (0 1)", "in (a,b)", "> x", "in", "in ("} {
		if b := boundsOf(malformed); b.malformed == nil || b.hold(1) {
			t.Errorf("%q is taken", malformed)
		}
	}
}
