package train

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/train/folder"
)

// ticking returns a clock that advances by one millisecond at each call.
func ticking() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

func TestThePaceOfATrainingIsThatOfTheClock(t *testing.T) {
	const network = `
dataset = { name = "bars", count = 100 }
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 50, batch = 32 }
hook.early_stopping.patience = 2
`
	for name, c := range map[string]struct {
		text string
		sets []string
		want Pace
	}{
		// An epoch reads the clock at its beginning, after all steps but the last, and at its end: 4 ms, of which one is that of
		// the measurement.
		"epochs":                 {network, nil, Pace{Step: 750 * time.Microsecond, End: time.Millisecond, Steps: 4, Epochs: 50, Timed: 4}},
		"a part of an epoch":     {network, []string{"dataset.count=2000"}, Pace{Step: time.Millisecond, End: time.Millisecond, Steps: 63, Epochs: 50, Timed: 8}},
		"a full-batch optimizer": {network, []string{"optimizer.kind=lbfgs"}, Pace{Step: time.Millisecond, Steps: 1, Epochs: 50, Timed: 4}},
		"a baseline":             {"kind = \"nmf\"\ndataset = { name = \"bars\", count = 100 }\ncomponents = 3\niterations = 7\ntolerance = 0.0\n", nil, Pace{Step: time.Millisecond, Steps: 1, Epochs: 7, Timed: 4}},
		// The first iteration does not lower the objective by half of it.
		"a baseline that converges": {"kind = \"nmf\"\ndataset = { name = \"bars\", count = 100 }\ncomponents = 3\niterations = 700\ntolerance = 0.5\n", nil, Pace{Step: time.Millisecond, Steps: 1, Epochs: 700, Timed: 1, Ended: 1}},
	} {
		spec := model(t, "[model.m]\n"+c.text, c.sets...)
		out := filepath.Join(t.TempDir(), "run")
		got, err := Time(context.Background(), spec, Options{Out: out}, ticking(), 10*time.Millisecond)
		c.want.Start, c.want.Checkpoint = time.Millisecond, time.Millisecond
		if err != nil || got != c.want {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", name, err, got, c.want)
		}
		expect.NoError(t, expect.Err(Open(out)), name)
		if folder.Held(out) {
			t.Errorf("%s: the run is still held", name)
		}
	}
}

func TestTheTimeOfATrainingHasItsCheckpoints(t *testing.T) {
	spec := model(t, "[model.m]\nkind = \"nmf\"\ndataset = { name = \"bars\", count = 100 }\ncomponents = 3\n")
	p := Pace{Start: time.Second, Step: 100 * time.Millisecond, End: 500 * time.Millisecond, Checkpoint: 10 * time.Second, Steps: 5}
	for every, want := range map[float64]time.Duration{
		0:    1*time.Second + 20*time.Second + 20*10*time.Second, // after every epoch
		5:    1*time.Second + 20*time.Second + 4*10*time.Second,
		1000: 1*time.Second + 20*time.Second + 200*time.Millisecond,
	} {
		spec.Train.CheckpointSeconds = every
		expect.Equal(t, p.Training(spec, 20), want, "a checkpoint every", every, "s")
	}
}

func TestATimingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	spec := model(t, "[model.m]\ndataset = { name = \"bars\", count = 100 }\nencoder = [{ kind = \"dense\", units = 4, activation = \"sigmoid\" }]\nloss = [{ kind = \"mse\" }]\n")
	expect.AnyError(t, expect.Err(Time(ctx, spec, Options{Out: filepath.Join(t.TempDir(), "run")}, ticking(), time.Hour)), "it did not end")
	expect.AnyError(t, expect.Err(Time(context.Background(), nil, Options{}, ticking(), time.Hour)), "no model was timed")
}
