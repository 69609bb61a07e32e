package sweep

import (
	"context"

	"tessera/metrics"
	"tessera/team"
)

// Do trains and measures one trial of the sweep on one thread, exactly as [Sweep.Run] does, or resumes it. Metrics that are
// already there are returned. Do writes only the folder of the trial: several processes may do different trials of one sweep
// at the same time, on different machines too. Report is called with the progress of the training.
//
// Errors are those of [train.Run], [train.Resume] and the evaluation; [folder.ErrLocked] means that another process works on
// this trial.
func (s *Sweep) Do(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if t.begun() {
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
	w := &work{Sweep: s, event: Event{Total: len(s.Trials)}}
	return w.do(ctx, t, team)
}
