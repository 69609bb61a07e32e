package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/graph"
	"tessera/metrics"
	"tessera/team"
	"tessera/train"
	"tessera/train/folder"
)

// do trains a trial, or goes on with it, and measures it.
func (w *work) do(ctx context.Context, t *Trial, team *team.Team) (*metrics.Report, error) {
	backend := engine.Backend{Team: team}
	o := train.Options{Backend: backend, Team: team, Dirs: w.options.Dirs, Out: t.Path, Disk: w.options.Disk,
		Environment: w.options.Environment, Report: w.progress(t),
		Load: func(context.Context, *config.Dataset) (*data.Set, error) { return t.fitted, nil }}
	var err error
	if t.begun() {
		_, err = train.Resume(ctx, t.Path, o)
	} else {
		_, err = train.Run(ctx, t.Model, o)
	}
	if err != nil {
		return nil, err
	}
	report, err := w.evaluate(ctx, t, backend)
	if err != nil {
		return nil, err
	}
	return report, w.keep(t, report)
}

// progress passes on how a trial's training goes on.
func (w *work) progress(t *Trial) func(train.Progress) {
	return func(p train.Progress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tell(Event{Trial: t, Progress: &p})
	}
}

// evaluate measures a trained trial on the test images of its data set, on all images where the set has no test split.
func (w *work) evaluate(ctx context.Context, t *Trial, backend graph.Backend) (report *metrics.Report, err error) {
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
	images, err := t.tested.Evaluation()
	if err != nil {
		return nil, err
	}
	name := t.Model.Dataset.Name
	if !slices.Equal(t.tested.Shape, coder.Shape()) {
		return nil, &data.Error{Dataset: name, Problem: fmt.Sprintf("its test images have shape %v, the fitted ones %v", t.tested.Shape, coder.Shape())}
	}
	var o metrics.Options
	o.KLTarget, _, _ = t.Model.KL()
	if w.options.SVM {
		o.SVM = metrics.NewSVMProtocol(t.Model.Train.Seed)
		o.Labels = images.Labels() // which Run has looked for
	}
	if report, err = metrics.Evaluate(ctx, coder, w.rows[images], o); err != nil {
		return nil, err
	}
	report.Model, report.Dataset = t.Model.Name, name
	return report, nil
}

// keep writes the metrics of a trial into its folder.
func (w *work) keep(t *Trial, report *metrics.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
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

// kept returns the metrics of a trial that is done, nil where there are none, or not those of the SVM that are asked for.
// What cannot be read is measured again.
func (s *Sweep) kept(t *Trial) *metrics.Report {
	text, err := os.ReadFile(filepath.Join(t.Path, keptFile))
	if err != nil {
		return nil
	}
	report := &metrics.Report{}
	if json.Unmarshal(text, report) != nil || report.Images == 0 || s.options.SVM && report.SVMAccuracy == nil {
		return nil
	}
	if !s.options.SVM {
		report.SVMAccuracy, report.SVMStd, report.SVMC = nil, nil, nil
	}
	return report
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
