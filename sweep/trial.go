package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/evaluation"
	"tessera/graph"
	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/team"
	"tessera/train"
)

// do trains or resumes a trial and measures it.
func (w *work) do(ctx context.Context, t *Trial, team *team.Team) (*metrics.Result, error) {
	backend := engine.Backend{Team: team}
	o := train.Options{Backend: backend, Team: team, Dirs: w.options.Dirs, Out: t.Path, Disk: w.options.Disk,
		Report: w.progress(t),
		Load:   func(context.Context, *config.Dataset) (*data.Set, error) { return t.fitted, nil }}
	var err error
	if t.begun() {
		_, err = train.Resume(ctx, t.Path, o)
	} else {
		_, err = train.Run(ctx, t.Model, o)
	}
	if err != nil {
		return nil, err
	}
	return w.measure(ctx, t, backend, w.split, keptFile)
}

// progress passes on the progress of a trial's training.
func (w *work) progress(t *Trial) func(train.Progress) {
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tell(Event{Trial: t, Progress: &p})
	}
}

// evaluate measures a trained trial on a split of its data set.
func (w *work) evaluate(ctx context.Context, t *Trial, backend graph.Backend, split data.Split) (measured *metrics.Result, err error) {
	trained, err := train.Open(t.Path)
	if err != nil {
		return nil, err
	}
	coder := trained.Coder(backend)
	if c, ok := coder.(io.Closer); ok {
		defer func() {
			if closed := c.Close(); err == nil {
				err = closed
			}
		}()
	}
	set := t.fitted
	if split == data.TestSplit {
		set = t.tested
	}
	sample, err := evaluation.Take(set.Scaled(trained.Scaling), t.Model, coder.Shape(), split)
	if err != nil {
		return nil, err
	}
	sample.Rows = w.rows[sample.Images]
	return evaluation.Measure(ctx, t.Model, coder, sample, w.options.Metrics)
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
