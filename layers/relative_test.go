package layers_test

import (
	"slices"
	"testing"

	"tessera/layers"
)

// A block with tanh is not linear, but y = s block(x / s) scales with the sample.
func TestRelativeFollowsTheScaleOfEachSample(t *testing.T) {
	keys := blockOf(t, map[string]any{"kind": "tanh"})
	x := []float64{3, 4, 0, 1, -1, 2}
	base := apply(t, fresh(t, "relative", keys)(), x, 2, []int{3}, true)
	scaled := slices.Clone(x)
	for i := range scaled {
		scaled[i] *= []float64{0.01, 100}[i/3]
	}
	want := slices.Clone(base)
	for i := range want {
		want[i] *= []float64{0.01, 100}[i/3]
	}
	wantNear(t, "relative", apply(t, fresh(t, "relative", keys)(), scaled, 2, []int{3}, true), want, 1e-12)
	if base[2] != 0 || base[0] <= 2.2 || base[0] >= 2.3 { // s = 5/sqrt 3, s tanh(3/s) = 2.243
		t.Errorf("got %v", base)
	}
}

func TestRelativeOfNothingIsZero(t *testing.T) {
	keys := blockOf(t, map[string]any{"kind": "tanh"})
	wantNear(t, "relative", apply(t, fresh(t, "relative", keys)(), make([]float64, 6), 2, []int{3}, true), make([]float64, 6), 1e-8)
}

func TestTheRangeOfARelativeBlockIsAllMultiples(t *testing.T) {
	relu := fresh(t, "relative", blockOf(t, map[string]any{"kind": "relu"}))().(*layers.Relative)
	if got := relu.OutputRange(layers.Everything); got.Low != 0 || got.High != layers.Everything.High {
		t.Errorf("relu: %v", got)
	}
	sigmoid := fresh(t, "relative", blockOf(t, map[string]any{"kind": "sigmoid"}))().(*layers.Relative)
	if got := sigmoid.OutputRange(layers.Interval{Low: 0, High: 1}); got.Low != 0 || got.High != layers.Everything.High {
		t.Errorf("sigmoid: %v: outputs are multiples of values in [0,1], not values in [0,1]", got)
	}
}
