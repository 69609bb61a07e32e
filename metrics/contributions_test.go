package metrics

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestEffectsAreDeviationsTimesLengths(t *testing.T) {
	atoms := &Atoms{Shape: []int{1, 2}, Count: 4, Values: []float32{3, 4, 3, 4, 0, 0, 1, 0}}
	// Activations 1 and 5 deviate by 2 from their mean; the second unit is constant, the third has an empty atom.
	got, err := atoms.Effects([]float32{1, 7, 1, 0, 5, 7, 5, 1})
	fatal.If(t, err)
	for j, want := range []float64{10, 0, 0, 0.5} {
		expect.Near(t, got[j], want, 1e-12, "unit", j)
	}
	for name, f := range map[string]func() ([]float64, error){
		"no atoms":        func() ([]float64, error) { return (*Atoms)(nil).Effects([]float32{1}) },
		"no codes":        func() ([]float64, error) { return atoms.Effects(nil) },
		"part of a code":  func() ([]float64, error) { return atoms.Effects([]float32{1, 2, 3}) },
		"a code with NaN": func() ([]float64, error) { return atoms.Effects([]float32{1, 2, 3, float32(math.NaN())}) },
		"other weights": func() ([]float64, error) {
			return (&Atoms{Shape: []int{1, 2}, Count: 1, Values: []float32{1, 2}, Indirect: "deeper"}).Effects([]float32{1})
		},
	} {
		expect.AnyError(t, expect.Err(f()), name)
	}
}
