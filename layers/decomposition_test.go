package layers_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/data/morph"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// The output of a new layer is not rescaled. It equals that of package morph in both precisions, for images of one and two
// channels.
func TestDecompositionsEqualPackageMorph(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	settings := layers.Decomposition{Levels: 3, Radius: 1, Step: 2, Original: true}
	for method, layer := range map[morph.Method]layers.Layer{
		morph.AMD:  &layers.AMD{Decomposition: settings},
		morph.PADO: &layers.PADO{Decomposition: settings},
	} {
		for _, shape := range [][]int{{10, 9}, {8, 11, 2}} {
			const batch = 3
			pixels := 1
			for _, d := range shape {
				pixels *= d
			}
			single := make([]float32, batch*pixels)
			double := make([]float64, len(single))
			for i := range single {
				single[i] = float32(r.IntN(9)) / 8 // many ties
				double[i] = float64(single[i])
			}
			want, _, err := morph.Decomposition{Method: method, Levels: 3, Start: 1, Step: 2, Original: true}.Apply(single, shape)
			fatal.If(t, err)
			got, _, err := gradcheck.Evaluate(gradcheck.Layer(layer, single, batch, shape, true))
			fatal.If(t, err)
			exact, _, err := gradcheck.Evaluate(gradcheck.Layer(layer, double, batch, shape, false))
			fatal.If(t, err)
			for i, v := range want {
				if got[i] != v || math.Abs(exact[i]-float64(v)) > 1e-7 {
					t.Fatalf("%s %v: value %d is %v and %v, want %v", method, shape, i, got[i], exact[i], v)
				}
			}
		}
	}
}
