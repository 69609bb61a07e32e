package sweep

import (
	"context"

	"tessera/metrics"
	"tessera/parallel/team"
	"tessera/train"
)

// do trains or resumes a trial and measures it.
func (w *work) do(ctx context.Context, t *Trial, team *team.Team) (*metrics.Result, error) {
	if w.options.Elsewhere != nil {
		return w.elsewhere(ctx, t)
	}
	one := w.One(t)
	one.Report = w.progress(t)
	return one.Do(ctx, team)
}

// progress passes on the progress of a trial's training.
func (w *work) progress(t *Trial) func(train.Progress) {
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tell(Event{Trial: t, Progress: &p})
	}
}
