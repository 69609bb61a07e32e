package metrics

import (
	"math/rand/v2"
	"testing"
)

func TestNegativeShareIsTheSizeOfWhatIsNegative(t *testing.T) {
	c := newAffine(rand.New(rand.NewPCG(3, 1)), []int{1, 2}, 2)
	for want, weights := range map[float64][]float32{0.25: {3, -1, 4.5, -1.5}, 0: {0, 0, 0, 0}, 1: {-1, -2, 0, -3}} {
		c.atoms.Values = weights
		close6(t, "negative_share", number(t, measured(t, c, []float32{0, 1}, selected(t, "negative_share")...), "negative_share"), want)
	}
}
