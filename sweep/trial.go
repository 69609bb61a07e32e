package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/evaluation"
	"tessera/graph"
	"tessera/metrics"
	"tessera/team"
	"tessera/train"
	"tessera/train/folder"
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
	measured, err := w.evaluate(ctx, t, backend)
	if err != nil {
		return nil, err
	}
	return measured, w.keep(t, measured)
}

// progress passes on the progress of a trial's training.
func (w *work) progress(t *Trial) func(train.Progress) {
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tell(Event{Trial: t, Progress: &p})
	}
}

// evaluate measures a trained trial on the images that its data set is evaluated on.
func (w *work) evaluate(ctx context.Context, t *Trial, backend graph.Backend) (measured *metrics.Result, err error) {
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
	images, err := evaluation.Images(t.tested, coder.Shape())
	if err != nil {
		return nil, err
	}
	return evaluation.Measure(ctx, t.Model, coder, images, w.rows[images], w.options.Metrics)
}

// keep writes the metrics of a trial into its folder, those that are not applicable included.
func (w *work) keep(t *Trial, measured *metrics.Result) error {
	text, err := json.MarshalIndent(measured.Whole(), "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", keptFile, err)
	}
	held, err := folder.Open(t.Path, w.options.Disk)
	if err != nil {
		return err
	}
	defer held.Close()
	return held.Write(folder.File{Name: keptFile, Data: append(text, '\n')})
}

// kept returns the metrics of a finished trial, nil if a requested metric is missing. Unreadable metrics are measured again.
func (s *Sweep) kept(t *Trial) *metrics.Result {
	text, err := os.ReadFile(filepath.Join(t.Path, keptFile))
	if err != nil {
		return nil
	}
	measured := &metrics.Result{}
	if json.Unmarshal(text, measured) != nil || measured.Images == 0 {
		return nil
	}
	picked, ok := s.options.Metrics.Of(measured)
	if !ok {
		return nil
	}
	return picked
}

// spent adds up the epochs and seconds of a run's metrics.jsonl.
func spent(text []byte) (epochs int, seconds float64) {
	for line := range bytes.Lines(text) {
		var epoch struct {
			Seconds float64 `json:"seconds"`
		}
		if json.Unmarshal(line, &epoch) == nil { // the last line of a killed run may be cut
			epochs++
			seconds += epoch.Seconds
		}
	}
	return epochs, seconds
}
