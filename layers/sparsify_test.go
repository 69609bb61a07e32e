package layers_test

import (
	"slices"
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["sparsify"] = []map[string]any{{"fraction": 0.5}, {"fraction": 0.01}, {"threshold": 0.4}}
}

func TestSparsifyRemovesSmallValuesWhileItIsActive(t *testing.T) {
	for _, c := range []struct {
		layer   layers.Sparsify
		x, want []float64
	}{
		{layers.Sparsify{Fraction: 0.5}, []float64{1, 5, 3, 0.1}, []float64{0, 5, 3, 0}},
		{layers.Sparsify{Fraction: 0.74}, []float64{2, 2, 2, 2}, []float64{2, 2, 0, 0}}, // floor(2.96) are removed
		{layers.Sparsify{Fraction: 0.1}, []float64{1, 5, 3, 0.1}, []float64{1, 5, 3, 0.1}},
		{layers.Sparsify{Threshold: 1}, []float64{1, 5, -3, 1.1}, []float64{0, 5, 0, 1.1}},
		{layers.Sparsify{Fraction: 0.29}, slices.Repeat([]float64{1}, 100), slices.Concat(slices.Repeat([]float64{1}, 71), make([]float64, 29))},
	} {
		for _, active := range []float64{1, 0} {
			g, err := gradcheck.Compile(gradcheck.Layer(&c.layer, c.x, 1, []int{len(c.x)}, true), false)
			fatal.If(t, err)
			defer g.Close()
			g.Leaf(layers.Switch).Values[0] = active
			fatal.If(t, g.Run())
			want := c.want
			if active == 0 {
				want = c.x
			}
			wantNear(t, "sparsify", g.Output(), want, 0)
		}
	}
}
