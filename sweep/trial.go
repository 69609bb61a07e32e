package sweep

import (
	"bytes"
	"context"
	"encoding/json"

	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/team"
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

// spent adds up the epochs and seconds of a run's metrics.jsonl.
func spent(text []byte) (epochs int, seconds float64) {
	for line := range bytes.Lines(text) {
		var epoch struct {
			Seconds float64 `json:"seconds"`
		}
		if json.Unmarshal(line, &epoch) == nil && sealed.CheckLine(bytes.TrimSpace(line)) == nil { // the last line of a killed run may be cut
			epochs++
			seconds += epoch.Seconds
		}
	}
	return epochs, seconds
}
