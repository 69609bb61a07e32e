package sweep

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
	"tessera/train"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// FleetDir is the sub-folder of a sweep's folder in which the queue of a sweep on several machines is kept until the sweep has
// finished.
const FleetDir = "fleet"

// Elsewhere does the trials of a sweep in another way than one after the other on the processors of this process.
type Elsewhere interface {
	// Ready returns an error if Begin is known to fail. It is called before anything is written.
	Ready() error
	// Begin is called once before the first trial, when the process holds the sweep's folder. todo are the unfinished trials.
	Begin(ctx context.Context, s *Sweep, todo []*Trial) error
	// Width is the largest number of concurrent calls of Do.
	Width() int
	// Do returns when the folder of the trial holds a finished run with its eval.json, or with the error of the trial. A
	// [*Stop] ends the sweep. progress may be called at any time until Do returns.
	Do(ctx context.Context, t *Trial, progress func(train.Progress)) error
	// End is called after the last Do has returned. err is what Run will return if End returns nil.
	End(err error) error
}

// Stop is the error of [Elsewhere.Do] that concerns the whole sweep.
type Stop struct{ Err error }

// Error implements error.
func (s *Stop) Error() string { return s.Err.Error() }

// Unwrap returns the cause.
func (s *Stop) Unwrap() error { return s.Err }

// ready asks the sweep's [Elsewhere] whether it can begin, if trials are left and no other process works on the sweep.
func (s *Sweep) ready() error {
	left := func(t *Trial) bool { return s.kept(t) == nil }
	if s.options.Elsewhere == nil || folder.Held(s.Path) || !slices.ContainsFunc(s.Trials, left) {
		return nil
	}
	return s.options.Elsewhere.Ready()
}

// One returns the trial apart from its sweep.
func (s *Sweep) One(t *Trial) *One {
	return &One{ID: t.ID, Model: t.Model, Path: t.Path, Fitted: t.fitted, Tested: t.tested, Split: s.split, Metrics: s.options.Metrics,
		Dirs: s.options.Dirs, Disk: s.options.Disk, Rows: s.rows}
}

// ReadsFiles reports whether the images of a trial come from files.
func (s *Sweep) ReadsFiles(t *Trial) bool { return len(t.fitted.Files)+len(t.tested.Files) > 0 }

// Check returns an error unless the folder of the trial holds its finished run, with the metrics that the sweep measures.
func (s *Sweep) Check(t *Trial) error {
	if err := t.verify(); err != nil {
		return err
	}
	if s.kept(t) == nil {
		return checkpoint.Errorf(filepath.Join(t.Path, keptFile), "is missing, damaged or of other parameters")
	}
	return nil
}

// Started names the file with the parameters that the model of a trial starts from; nil for none.
func (t *Trial) Started() *data.File {
	start, err := train.StartOf(t.Model)
	if err != nil { // the training says what is wrong
		return nil
	}
	return start
}

// Declaration is the model of the trial as the text of a config.toml.
func (t *Trial) Declaration() []byte { return config.Fill(t.Model) }

// Describe names a trial of the sweep by its model and its settings: "small loss.1.target=0.2 seed=1".
func (s *Sweep) Describe(t *Trial) string {
	parts := []string{t.Model.Name}
	for i, text := range t.Texts() {
		parts = append(parts, s.Keys[i]+"="+text)
	}
	return strings.Join(append(parts, fmt.Sprintf("seed=%d", t.Model.Train.Seed)), " ")
}

// Begun reports whether the folder of the trial holds a run, finished or not.
func (t *Trial) Begun() bool { return begun(t.Path) }

// elsewhere does one trial by the sweep's [Elsewhere].
func (w *work) elsewhere(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if err := w.options.Elsewhere.Do(ctx, t, w.progress(t)); err != nil {
		return nil, err
	}
	if err := w.Check(t); err != nil {
		return nil, err
	}
	return w.kept(t), nil
}
