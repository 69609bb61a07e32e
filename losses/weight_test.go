package losses_test

import (
	"math"
	"testing"

	"tessera/laws"
	"tessera/losses"
)

func TestWeightSchedulesInterpolate(t *testing.T) {
	for kind, want := range map[string][]float64{ // at 0, a quarter, a half, the end and later
		"linear": {2, 1.5, 1, 0, 0},
		"cosine": {2, 1 + math.Sqrt(0.5), 1, 0, 0},
		"step":   {2, 2, 2, 0, 0},
	} {
		e, ok := losses.Weights.Lookup(kind)
		if !ok {
			t.Fatalf("%s is not registered", kind)
		}
		w := e.New()
		for key, v := range map[string]float64{"from": 2, "to": 0, "epochs": 8} {
			if err := laws.Set(w, key, v); err != nil {
				t.Fatal(err)
			}
		}
		for i, epoch := range []float64{0, 2, 4, 8, math.Inf(1)} {
			if got := w.At(epoch); math.Abs(got-want[i]) > 1e-15 {
				t.Errorf("%s after %v epochs is %v, want %v", kind, epoch, got, want[i])
			}
		}
	}
}
