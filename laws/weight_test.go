package laws_test

import (
	"math"
	"testing"

	"tessera/laws"
	"tessera/losses"
)

// weightOf is a schedule made of a function.
type weightOf func(epoch float64) float64

func (f weightOf) At(epoch float64) float64 { return f(epoch) }

// The control of the kit: a law that no wrong part can break proves nothing.
func TestWrongWeightsBreakTheirLaw(t *testing.T) {
	calls := 0.0
	wrong := map[string]weightOf{
		"is finite and not negative at every epoch and in the end": func(epoch float64) float64 { return max(3-epoch, -1) },
		"depends on nothing but the epoch":                         func(float64) float64 { calls++; return calls },
		"ends where it tends to": func(epoch float64) float64 {
			if math.IsInf(epoch, 1) {
				return 0
			}
			return 1
		},
	}
	for _, law := range laws.Weight {
		w, ok := wrong[law.Name]
		if !ok {
			t.Errorf("no weight breaks %q", law.Name)
		} else if law.Broken(func() losses.Weight { return w }) == nil {
			t.Errorf("the weight that is to break %q obeys it", law.Name)
		}
	}
	decaying := func() losses.Weight { return weightOf(func(epoch float64) float64 { return 1 / (1 + epoch) }) }
	if broken := laws.Broken(laws.Weight, decaying); len(broken) > 0 {
		t.Errorf("the right weight breaks %q", broken)
	}
}
