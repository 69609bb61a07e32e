package layers

import (
	"math"
	"testing"

	"tessera/data/morph"
)

// With the largest int as the number of levels, the number of channels would overflow.
func TestADecompositionHasABoundedNumberOfLevels(t *testing.T) {
	for _, levels := range []int{morph.MaxLevels + 1, 1 << 62, math.MaxInt - 1, math.MaxInt} {
		for _, original := range []bool{false, true} {
			d := Decomposition{Levels: levels, Radius: 1, Step: 1, Original: original}
			for name, l := range map[string]Layer{"pado": &PADO{d}, "amd": &AMD{d}} {
				if shape, err := l.OutputShape([]int{4, 4}); err == nil {
					t.Errorf("%s of %d levels: got shape %v", name, levels, shape)
				}
			}
			if (morph.Decomposition{Method: morph.AMD, Levels: levels, Start: 1}).Check() == nil {
				t.Errorf("%d levels were accepted", levels)
			}
		}
	}
}
