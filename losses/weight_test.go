package losses_test

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
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
			fatal.If(t, laws.Set(w, key, v))
		}
		for i, epoch := range []float64{0, 2, 4, 8, math.Inf(1)} {
			expect.Near(t, w.At(epoch), want[i], 1e-15, kind, "after", epoch, "epochs")
		}
	}
}

func TestPointsInterpolateAndJump(t *testing.T) {
	w := &losses.Points{Epochs: []float64{2, 2, 6, 7}, Weights: []float64{1, 3, 5, 0}}
	fatal.If(t, w.Check())
	for epoch, want := range map[float64]float64{0: 1, 1.9: 1, 2: 3, 3: 3.5, 6: 5, 6.5: 2.5, 7: 0, math.Inf(1): 0} {
		expect.Near(t, w.At(epoch), want, 1e-15, "after", epoch, "epochs")
	}
	one := &losses.Points{Epochs: []float64{3}, Weights: []float64{2}}
	if one.At(0) != 2 || one.At(3) != 2 || one.At(4) != 2 {
		t.Error("one point is not a constant weight")
	}
}

func TestPointsThatAreNoScheduleAreErrors(t *testing.T) {
	for want, w := range map[string]*losses.Points{
		"got 1 weights for 2 epochs": {Epochs: []float64{0, 1}, Weights: []float64{1}},
		"at least one":               {},
		"got 0 after 1, want":        {Epochs: []float64{0, 1, 0}, Weights: []float64{1, 1, 1}},
	} {
		expect.Error(t, w.Check(), want, w)
	}
}

func TestAScheduleGoesThroughItsPoints(t *testing.T) {
	points := &losses.Points{Epochs: []float64{10, 10, 40}, Weights: []float64{0.002, 0.05, 0.002}}
	expect.Slice(t, losses.Through(points), points.Weights, "points")
	expect.Slice(t, losses.Through(&losses.Linear{Between: losses.Between{From: 1, To: 3, Epochs: 10}}), []float64{1, 3}, "linear")
}

func TestSchedulesEndWhereTheyStayAsTheyAre(t *testing.T) {
	between := losses.Between{From: 1, To: 3, Epochs: 10}
	for want, list := range map[float64][]losses.Ending{
		10: {&losses.Linear{Between: between}, &losses.Cosine{Between: between}, &losses.Step{Between: between}},
		7:  {&losses.Points{Epochs: []float64{2, 7}, Weights: []float64{1, 3}}, &losses.Points{Epochs: []float64{2, 7, 7, 9}, Weights: []float64{1, 2, 3, 3}}},
	} {
		for _, w := range list {
			expect.Equal(t, w.Ends(), want, w)
			if w := w.(losses.Weight); w.At(want) != w.At(math.Inf(1)) || w.At(want-0.5) == w.At(want) {
				t.Errorf("%T: %v is not where its weight stays", w, want)
			}
		}
	}
}

func TestSchedulesWithoutAChangeEndAtOnce(t *testing.T) {
	for _, w := range []losses.Ending{&losses.Linear{Between: losses.Between{From: 2, To: 2, Epochs: 10}}, &losses.Points{Epochs: []float64{4}, Weights: []float64{1}},
		&losses.Points{Epochs: []float64{1, 4}, Weights: []float64{3, 3}}} {
		expect.Equal(t, w.Ends(), 0, w)
	}
}
