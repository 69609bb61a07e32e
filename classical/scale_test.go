package classical

import (
	"math"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// Squares of these values are no float32 numbers.
func TestFactorisationsOfExtremeValues(t *testing.T) {
	want := math.NaN()
	for _, unit := range []float32{1, 1e-20, 1e20} {
		m := newModel(t, &NMF{Components: 5, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 20}, mixedShape, 1)
		objectives := fitAll(t, m, Matrix{multiplied(mixed(300).values, unit, false), 30})
		got := objectives[len(objectives)-1] / float64(unit) / float64(unit)
		if unit == 1 {
			want = got
		} else if !(math.Abs(got-want) <= 0.05*want) { // the values times 1 start from their own mean
			t.Errorf("values times %g: error %v, want %v", unit, got, want)
		}
	}
}

func TestADefaultFloorAboveManyValuesIsNoted(t *testing.T) {
	images := mixed(300)
	for i, v := range images.values { // a wide range of powers, as in a spectrogram
		images.values[i] = float32(math.Pow(float64(v), 6))
	}
	for _, floor := range []float64{usualFloor, 1e-9} {
		m := newModel(t, &NMF{Components: 5, Solver: "mu", Loss: "itakura_saito", Floor: floor, Init: "random", Iterations: 2}, mixedShape, 1)
		fitAll(t, m, images)
		expect.Equal(t, strings.Contains(strings.Join(Notes(m), ""), "below the default floor"), floor == usualFloor, "floor", floor, "notes")
	}
}
