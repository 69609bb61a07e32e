package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// held returns the values of a metric on codes of three clouds with 5 units.
func held(t *testing.T, m *SVMHoldout, codes []float32, labels []int) []Value {
	t.Helper()
	meter, err := m.Start(&Subject{Units: 5, Seed: 77})
	fatal.If(t, err)
	fatal.If(t, meter.Add(&Batch{Codes: codes, Labels: labels}))
	values, err := meter.Values(context.Background())
	fatal.If(t, err)
	return values
}

func TestTheHeldOutAccuracyIsTheMeanOfItsSplits(t *testing.T) {
	codes, labels := clouds(rand.New(rand.NewPCG(4, 4)), 600, 5, 3)
	values := held(t, &SVMHoldout{Seed: 1, Scale: true}, codes, labels)
	sum := 0.0
	for _, v := range values[3:] {
		sum += v.Number
	}
	if len(values) != 3+holdouts || math.Abs(values[0].Number-sum/holdouts) > 1e-15 || values[0].Number < 0.5 {
		t.Errorf("got %v", values)
	}
	if other := held(t, &SVMHoldout{Seed: 2, Scale: true}, codes, labels); slices.Equal(values, other) {
		t.Error("another seed gives the same accuracies: are the splits those of the seed?")
	}
	expect.Slice(t, held(t, &SVMHoldout{Scale: true}, codes, labels), held(t, &SVMHoldout{Seed: 77, Scale: true}, codes, labels), "seed 0 is not the run's seed")
}

// If two sets of codes differ only in the scale of their units, the accuracies are equal with Scale and different without.
func TestScaledCodesDoNotDependOnTheScaleOfUnits(t *testing.T) {
	codes, labels := clouds(rand.New(rand.NewPCG(4, 4)), 600, 5, 3)
	stretched := slices.Clone(codes)
	for i := range stretched {
		stretched[i] *= []float32{1, 1024, 1. / 4096, 64, 1. / 512}[i%5]
	}
	scaled := &SVMHoldout{Seed: 1, Scale: true}
	expect.Slice(t, held(t, scaled, codes, labels), held(t, scaled, stretched, labels))
	plain := &SVMHoldout{Seed: 1}
	if a, b := held(t, plain, codes, labels), held(t, plain, stretched, labels); slices.Equal(a, b) {
		t.Error("without scaling the scale of units changes nothing: what does Scale do?")
	}
}

// With random labels the accuracy is that of guessing, because the classifier is not fitted to the held-out codes.
func TestWhatIsHeldOutIsNotFitted(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	codes, labels := uniform(r, 60*5), make([]int, 60)
	for i := range labels {
		labels[i] = r.IntN(2)
	}
	if v := held(t, &SVMHoldout{Seed: 1, Scale: true}, codes, labels)[0]; v.Number > 0.8 {
		t.Errorf("accuracy %g of random labels", v.Number)
	}
}
