package train

import (
	"context"
	"errors"
	"time"

	"tessera/config"
	"tessera/internal/lists"
	"tessera/internal/train/folder"
)

// Pace contains the times that the parts of a training take on this machine, estimated from some steps.
type Pace struct {
	Start      time.Duration // before the first step: parameters, programs, the first checkpoint
	Step       time.Duration // one step: forward, backward, update; one iteration of a baseline or a full-batch optimizer
	End        time.Duration // end of an epoch: measurements on the validation images
	Checkpoint time.Duration // one checkpoint
	Steps      int           // steps per epoch
	Epochs     int           // maximum number of epochs
	Timed      int           // number of timed steps
	Ended      int           // epoch at which the training ended by its own rule while it was timed; 0 if it did not
}

// EpochsOf returns the number of epochs of a training of this pace: those at which it ended, if it did, else those of the declaration.
func (p Pace) EpochsOf(spec *config.Model) int {
	most := spec.Training().Most
	if p.Ended > 0 {
		return min(most, p.Ended)
	}
	return most
}

// Training returns the estimated time of a training with the given number of epochs: Start + epochs (Steps Step + End), plus
// the checkpoints, at most one every checkpoint_seconds.
func (p Pace) Training(spec *config.Model, epochs int) time.Duration {
	whole := time.Duration(epochs) * (time.Duration(p.Steps)*p.Step + p.End)
	checkpoints := float64(epochs)
	if every := spec.Train.CheckpointSeconds; every > 0 {
		checkpoints = min(checkpoints, whole.Seconds()/every)
	}
	return p.Start + whole + time.Duration(checkpoints*float64(p.Checkpoint))
}

// fewestSteps is the minimum number of timed steps, even if they take longer than the budget.
const fewestSteps = 3

// Time estimates the pace of a model's training. It starts a run in the folder o.Out, trains until the steps have used the
// time budget, then measures the end of an epoch once. The resulting run must not be resumed. now returns the current time; a
// nil function means [time.Now]. The errors are those of [Run].
func Time(ctx context.Context, spec *config.Model, o Options, now func() time.Time, budget time.Duration) (p Pace, err error) {
	if err := verified(ctx, spec); err != nil {
		return p, err
	}
	if now == nil {
		now = time.Now
	}
	o, release := o.complete()
	defer release()
	begun := now()
	s, err := beginSession(ctx, spec, o, nil)
	if err != nil {
		return p, err
	}
	defer s.close()
	files, err := s.firstFiles()
	if err != nil {
		return p, err
	}
	if s.folder, err = folder.Create(o.Out, false, disk(o), files...); err != nil {
		return p, err
	}
	s.run = s.folder.Path()
	p.Start = now().Sub(begun)
	p.Steps, p.Epochs = s.stepsPerEpoch(), s.training.Most
	if err := s.timeSteps(ctx, &p, now, budget); err != nil {
		return p, err
	}
	from := now()
	if files, err = s.checkpoint(); err != nil {
		return p, err
	}
	p.Checkpoint = now().Sub(from)
	return p, s.folder.Write(files...)
}

// stopwatch times steps and epochs until they have used a budget.
type stopwatch struct {
	now         func() time.Time
	budget      time.Duration
	begun       time.Time
	first, last time.Time // ends of the first and the last timed step; the first step only warms up the caches
	steps       int
	epochs      []time.Duration
}

// step records the end of a step and reports whether enough steps have been timed.
func (w *stopwatch) step() (enough bool) {
	w.last = w.now()
	if w.steps++; w.steps == 1 {
		w.first = w.last
	}
	return w.enough()
}

// epoch records an epoch that started at from and ends now.
func (w *stopwatch) epoch(from time.Time) {
	w.last = w.now()
	w.epochs = append(w.epochs, w.last.Sub(from))
}

func (w *stopwatch) enough() bool {
	return w.last.Sub(w.begun) >= w.budget && (w.steps > fewestSteps || len(w.epochs) > 1)
}

// mean returns the mean time per step and the number of timed steps. If complete epochs were timed, it is their mean time,
// less the time end for the end of each epoch, per step.
func (w *stopwatch) mean(steps int, end time.Duration) (step time.Duration, timed int) {
	if len(w.epochs) == 0 {
		return w.last.Sub(w.first) / time.Duration(max(1, w.steps-1)), w.steps - 1
	}
	some := w.epochs
	if len(some) > 1 {
		some = some[1:]
	}
	return max(0, lists.Sum(some)/time.Duration(len(some))-end) / time.Duration(steps), len(some) * steps
}

// timeSteps times the steps of a session, and the end of an epoch.
func (s *session) timeSteps(ctx context.Context, p *Pace, now func() time.Time, budget time.Duration) error {
	w := &stopwatch{now: now, budget: budget, begun: now()}
	w.last = w.begun
	for !w.enough() && !s.finished() {
		within, stop := context.WithCancel(ctx)
		s.epochFrom = time.Now()
		from := now()
		_, err := s.learner.epoch(within, func(func() Metrics) {
			if w.step() {
				stop()
			}
		})
		stop()
		switch {
		case err == nil:
			w.epoch(from)
		case !errors.Is(err, errHalted):
			return err
		case ctx.Err() != nil:
			return ErrInterrupted
		}
	}
	if n, ok := s.learner.(*network); ok {
		from := now()
		if _, err := n.finish(); err != nil {
			return err
		}
		p.End = now().Sub(from)
	}
	p.Step, p.Timed = w.mean(p.Steps, p.End)
	if s.progress.Stopped {
		p.Ended = s.progress.Epoch
	}
	return nil
}
