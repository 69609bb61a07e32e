package metrics

import (
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Two parts of two pixels; the atom of the second part has a cosine of 0.6 with the first one, and 0.8 with its own.
func TestThePartsFoundDependOnTheCosineThatIsAskedFor(t *testing.T) {
	s := &Subject{Parts: [][]float32{{1, 0}, {0, 1}}, Atoms: &Atoms{Shape: []int{2}, Count: 2, Values: []float32{3, 0, 0.6, 0.8}}}
	for text, want := range map[string]float64{"": 1, "part_cosine=0.9": 1, "part_cosine=0.79": 2} {
		chosen := selected(t, "parts_found")
		if text != "" {
			fatal.If(t, chosen.SetText(text))
		}
		meter, err := chosen[0].Metric.Start(s)
		fatal.If(t, err)
		values, err := meter.Values(t.Context())
		if err != nil || values[0].Number != want || values[1].Number < 0.899 || values[1].Number > 0.901 {
			t.Errorf("%q: got %v and the error %v, want %v parts with a mean cosine of 0.9", text, values, err, want)
		}
	}
	chosen := selected(t, "parts_found")
	for _, text := range []string{"part_cosine=2", "part_cosine=0"} {
		expect.AnyError(t, chosen.SetText(text), text)
	}
}

// The atom of the first part has little of the second one, that of the second has absorbed the third, which is itself.
func TestAnAtomThatIsNearerToASumHasAbsorbedAPart(t *testing.T) {
	s := &Subject{Parts: [][]float32{{5, 0, 0}, {0, 1, 0}, {0, 0, 0.1}}, Atoms: &Atoms{Shape: []int{3}, Count: 3, Values: []float32{3, 0.3, 0, 0, 0.8, 0.6, 0, 0, 1}}}
	meter, err := selected(t, "parts_found")[0].Metric.Start(s)
	fatal.If(t, err)
	if values, err := meter.Values(t.Context()); err != nil || values[2].Number != 1 {
		t.Errorf("got %v, %v, want 1 absorbed part", values, err)
	}
}
