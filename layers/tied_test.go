package layers_test

import (
	"slices"
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["tied"] = []map[string]any{{}, {"bias": false}, {"activation": layers.ActivationName("sigmoid")}}
}

func TestTiedEqualsPlainLoops(t *testing.T) {
	const batch, pixels, units = 3, 5, 4
	h, w := drawnNormal(batch*units, "h"), drawnNormal(pixels*units, "w") // w in the encoder's layout: (pixels, units)
	for _, bias := range []bool{true, false} {
		l := &layers.Tied{Weight: "encoder.0.weight", Activation: "linear", Bias: bias}
		l.Lend([]int{pixels, units})
		g, err := gradcheck.Compile(gradcheck.Layer(l, h, batch, []int{2, 2}, false), false)
		fatal.If(t, err)
		defer g.Close()
		for j := range units {
			for i := range pixels {
				g.Leaf("weight").Values[j*pixels+i] = w[i*units+j]
			}
		}
		var offset [pixels]float64
		if bias {
			copy(g.Leaf("bias").Values, []float64{1, -2, 3, -4, 5})
			copy(offset[:], g.Leaf("bias").Values)
		}
		fatal.If(t, g.Run())
		var want []float64
		for b := range batch {
			row := slices.Clone(offset[:])
			for i := range row {
				for j := range units {
					row[i] += h[b*units+j] * w[i*units+j]
				}
			}
			want = append(want, row...)
		}
		wantNear(t, "tied", g.Output(), want, 1e-12)
	}
}

func TestTiedRefusesWeightsThatDoNotFit(t *testing.T) {
	for _, lent := range [][]int{nil, {4}, {2, 3, 1, 4}, {5, 3}} {
		l := &layers.Tied{Weight: "encoder.0.weight", Activation: "linear"}
		l.Lend(lent)
		if shape, err := l.OutputShape([]int{4}); err == nil {
			t.Errorf("a weight of shape %v gives shape %v, want an error", lent, shape)
		}
	}
}
