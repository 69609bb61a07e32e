package metrics

import (
	"context"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/parallel/team"
)

// panicking is an incorrect metric that panics in one of its methods.
type panicking struct{ in string }

func (panicking) Describe() Description {
	return Description{Measures: []Measure{{Name: "own"}}, Reads: ReadsCodes}
}

func (m panicking) Start(*Subject) (Meter, error) {
	if m.in == "Start" {
		panic("in Start")
	}
	return m, nil
}

func (m panicking) Add(*Batch) error {
	if m.in == "Add" {
		team.For(4, 1, func(int, int) { panic("in Add") })
	}
	return nil
}

func (m panicking) Values(context.Context) ([]Value, error) { panic("in Values") }

func TestAPanicOfAMetricIsAnErrorWithItsName(t *testing.T) {
	for _, in := range []string{"Start", "Add", "Values"} {
		_, err := Evaluate(context.Background(), newAffine(rand.New(rand.NewPCG(1, 2)), []int{1, 2}, 2), Sample{Images: []float32{1, 2}}, Selection{{Metric: panicking{in}}})
		expect.Error(t, err, "metrics: own: panicked: in "+in)
	}
}
