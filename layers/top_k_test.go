package layers_test

import (
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["top_k"] = []map[string]any{{"k": 1}, {"k": 2}, {}}
}

func TestTopKKeepsTheLargestValues(t *testing.T) {
	for _, c := range []struct {
		k       int
		x, want []float64
	}{
		{2, []float64{1, 5, 3, -1}, []float64{0, 5, 3, 0}},
		{2, []float64{2, 2, 2, 2}, []float64{2, 2, 0, 0}},
		{3, []float64{-3, 4, -1, -2}, []float64{0, 4, -1, -2}},
		{2, []float64{1, 7, 1, 1}, []float64{1, 7, 0, 0}},
		{4, []float64{1, 0, -1, 2}, []float64{1, 0, -1, 2}},
		{9, []float64{1, 0, -1, 2}, []float64{1, 0, -1, 2}},
	} {
		g, err := gradcheck.Compile(gradcheck.Layer(&layers.TopK{K: c.k}, c.x, 1, []int{4}, false), false)
		fatal.If(t, err)
		defer g.Close()
		fatal.If(t, g.Run())
		wantNear(t, "top_k", g.Output(), c.want, 0)
	}
}
