package layers_test

import (
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// Three samples of four units; the sixth largest value is 0.5.
var threeCodes = []float64{5, 4, 3, 0.5, 2, 1, -1, 0.25, -2, -3, 0.75, -4}

func TestLayersOfSparseCodesKeepWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		name      string
		layer     layers.Layer
		training  bool
		threshold float64 // before the step
		want      []float64
		next      float64 // threshold after the step
	}{
		{"batch_top_k", &layers.BatchTopK{K: 2, Momentum: 0.75}, true, -1, []float64{5, 4, 3, 0, 2, 1, 0, 0, 0, 0, 0.75, 0}, 0.5},
		{"batch_top_k later", &layers.BatchTopK{K: 2, Momentum: 0.75}, true, 1.5, []float64{5, 4, 3, 0, 2, 1, 0, 0, 0, 0, 0.75, 0}, 1.25},
		{"batch_top_k of all", &layers.BatchTopK{K: 4, Momentum: 0.75}, true, -1, []float64{5, 4, 3, 0.5, 2, 1, 0, 0.25, 0, 0, 0.75, 0}, 0},
		{"batch_top_k at inference", &layers.BatchTopK{K: 2, Momentum: 0.75}, false, 2.5, []float64{5, 4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 2.5},
		{"batch_top_k untrained", &layers.BatchTopK{K: 2, Momentum: 0.75}, false, -1, []float64{5, 4, 3, 0.5, 2, 1, 0, 0.25, 0, 0, 0.75, 0}, -1},
		{"group_max", &layers.GroupMax{Groups: 2}, false, 0, []float64{5, 0, 3, 0, 2, 0, 0, 0.25, -2, 0, 0.75, 0}, 0},
		{"prefix", &layers.Prefix{Units: 3}, false, 0, []float64{5, 4, 3, 0, 2, 1, -1, 0, -2, -3, 0.75, 0}, 0},
	} {
		g, err := gradcheck.Compile(gradcheck.Layer(c.layer, threeCodes, 3, []int{4}, c.training), false)
		fatal.If(t, err)
		if len(c.layer.Parameters([]int{4})) > 0 {
			g.Leaf("threshold").Values[0] = c.threshold
		}
		fatal.If(t, g.Run())
		wantNear(t, c.name, g.Output(), c.want, 0)
		if next := g.Update("threshold"); next != nil {
			wantNear(t, c.name+": threshold", next, []float64{c.next}, 1e-12)
		}
		g.Close()
	}
}
