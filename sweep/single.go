package sweep

import (
	"context"

	"tessera/metrics"
	"tessera/parallel/team"
	"tessera/train"
)

// Do trains and measures one trial of the sweep on one thread, exactly as [Sweep.Run] does, or resumes it. Metrics that are
// already there are returned. Do writes only the folder of the trial: several processes may do different trials of one sweep
// at the same time, on different machines too. Report is called with the progress of the training.
//
// Errors are those of [train.Run], [train.Resume] and the evaluation; [folder.ErrLocked] means that another process works on
// this trial.
func (s *Sweep) Do(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if t.Begun() {
		if err := t.verify(); err != nil {
			return nil, err
		}
	}
	if measured := s.kept(t); measured != nil {
		return measured, nil
	}
	if err := s.labelled(); err != nil {
		return nil, err
	}
	team := team.New(1)
	defer team.Close()
	one := s.One(t)
	if report := s.options.Report; report != nil {
		one.Report = func(p train.Progress) { report(Event{Trial: t, Progress: &p, Total: len(s.Trials)}) }
	}
	return one.Do(ctx, team)
}
