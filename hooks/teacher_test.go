package hooks

import (
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/losses"
)

// The expected average is the weighted sum over all steps, in float64.
func TestTheTeacherIsTheMovingAverage(t *testing.T) {
	f := newFake(t, []float32{1, 0, 0, 0})
	const decay = 0.75
	active, err := (&Teacher{Decay: &losses.Constant{Value: decay}}).Attach(f)
	fatal.If(t, err)
	w, stat := f.parameters[0], f.parameters[1]
	stat.Trainable = false // a running average of its layer
	w.Data[3], stat.Data[0] = 5, 2
	fatal.If(t, active.Initialise())
	want, wantStat := 5.0, 2.0
	scratch := make([]float32, 5) // shorter than the parameter
	for ; f.step < 20; f.step++ {
		fatal.If(t, active.BeforeStep(&Step{}))
		w.Data[3], stat.Data[0] = float32(f.step), float32(-f.step)
		active.AfterUpdate(w, w.Data[2:], 2, scratch)
		fatal.If(t, active.AfterStep())
		want = decay*want + (1-decay)*float64(f.step)
		wantStat = decay*wantStat - (1-decay)*float64(f.step)
	}
	lent := active.Lend()
	if len(lent) != 4 || lent[0].Path != w.Path || lent[0].Trainable {
		t.Fatalf("lent: %+v", lent)
	}
	expect.Near(t, float64(lent[0].Data[3]), want, 1e-5)
	expect.Near(t, float64(lent[1].Data[0]), wantStat, 1e-5)
	expect.Equal(t, &lent[0].Data[0], &active.Average(w)[0], "what is lent is a copy")
}

// A schedule counts the epochs before a step, of which there may be any number of steps.
func TestTheDecayOfATeacherMayBeASchedule(t *testing.T) {
	f := newFake(t, []float32{1, 0, 0, 0})
	hook := &Teacher{Decay: &losses.Step{Between: losses.Between{From: 0.5, To: 1, Epochs: 1}}}
	fatal.If(t, hook.Check())
	active, err := hook.Attach(f)
	fatal.If(t, err)
	w := f.parameters[0]
	w.Data[0] = 0
	fatal.If(t, active.Initialise())
	for ; f.step < 4; f.step++ {
		fatal.If(t, active.BeforeStep(&Step{Epochs: float64(f.step) / 2}))
		w.Data[0] = 1
		active.AfterUpdate(w, w.Data, 0, make([]float32, 8))
	}
	expect.Equal(t, active.Lend()[0].Data[0], 0.75, "after two steps with a decay of 0.5 and two of 1")
}

func TestADecayOutsideItsRangeIsAnError(t *testing.T) {
	for _, decay := range []losses.Weight{
		nil,
		&losses.Constant{Value: 1},
		&losses.Points{Epochs: []float64{0}, Weights: []float64{1}},
		&losses.Points{Epochs: []float64{0, 1, 2}, Weights: []float64{0.5, 1, 0.9}},
		&losses.Points{Epochs: []float64{0, 1, 2}, Weights: []float64{0.5, 30, 0.9}},
		&losses.Linear{Between: losses.Between{From: 0.5, To: 1.1, Epochs: 3}},
		&losses.Multiplier{From: 0.9, Limit: 0.1, Rate: 0.1},
	} {
		expect.AnyError(t, (&Teacher{Decay: decay}).Check(), decay, "is accepted")
	}
	for _, decay := range []losses.Weight{&losses.Constant{Value: 0.9}, &losses.Cosine{Between: losses.Between{From: 0.99, To: 1, Epochs: 3}},
		&losses.Points{Epochs: []float64{0, 1, 2}, Weights: []float64{0.9, 1, 1}}} {
		expect.NoError(t, (&Teacher{Decay: decay}).Check(), decay)
	}
}
