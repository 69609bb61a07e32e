// Package sweep trains and measures the trials of a declared sweep, several at once, and stores the results.
//
// A trial is an ordinary run in SWEEP/trials/ID on one thread. One thread per trial and one trial per processor is
// faster than one trial at a time on all processors. ID is the hash of the model's non-default values, of the data and
// of the initial parameters. A sweep that was killed, or declared again, therefore repeats no trial: a finished trial
// has its metrics in eval.json, and a started trial resumes from its last checkpoint and produces the bytes of an
// uninterrupted trial.
//
// The sweep's folder contains the results of all trials; see [Results]. The bytes of the results do not depend on time,
// on the number of concurrent trials, or on interruptions. Times are in a separate file.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// Names of the files of a sweep.
const (
	ResultsFile = "results.json" // trials and settings
	TableFile   = "results.csv"  // one row per trial
	SummaryFile = "summary.csv"  // one row per setting
	TimingsFile = "timings.csv"  // one row per trial; the only file that differs between two executions or machines
	trialsDir   = "trials"
	keptFile    = "eval.json" // metrics of a trial, in the trial's folder
)

// Options are the settings of a sweep that are not part of its declaration. Only Metrics affects the bytes of the
// results.
type Options struct {
	Dirs    data.Dirs         // where data sets are searched for
	Out     string            // folder of the sweep; "" for sweeps/NAME
	Jobs    int               // number of concurrent trials; < 1: one per processor
	Metrics metrics.Selection // metrics measured for every trial; nil: [metrics.Default]
	Report  func(Event)       // called by one goroutine at a time; may be nil
	Disk    folder.Disk       // disk of the sweep's folder; nil: that of the operating system
	Clean   bool              // removes [Sweep.Orphans], and allows to replace results that [Sweep.Replaces] protects

	Executor Executor // runs the trials; nil: this process runs them, Jobs at once
}

// Sweep is a declared sweep with its data in memory. The identities of its trials are computed from both.
type Sweep struct {
	Name   string
	Path   string         // folder of the sweep
	Keys   []string       // keys that vary, as in --set
	Trials []*Trial       // trials in the order of the declaration, without repeated identities
	Unfit  []config.Unfit // models without a trial, as in the declaration

	split    data.Split         // images on which the trials are measured
	criteria []config.Criterion // criteria by which settings are selected
	changes  []string           // changes of the declaration
	options  Options
	sets     []loadedSet
	rows     map[*data.Images][]float32
}

// Trial is one model of a sweep.
type Trial struct {
	config.Trial
	ID   string // hash of the model's non-default values, of the data and of the initial parameters
	Path string // folder of the run

	fitted   *data.Set // data set on which the trial is trained
	tested   *data.Set // data set on which the trial is evaluated
	measured *metrics.Result
	onTest   *metrics.Result // metrics of a selected setting on the test images
	err      error
}

// Fitted returns the number of images that the trial is fitted to. The error is that of [data.Set.Split].
func (t *Trial) Fitted() (int, error) {
	splits, err := t.fitted.Split(t.Model.Dataset.Selection, t.Model.Train.Seed)
	return splits.Fit.Len(), err
}

// loadedSet is a data set in memory, shared by all trials with the same source and need.
type loadedSet struct {
	source data.Source
	need   data.Need
	set    *data.Set
}

// New reads the data of a sweep and computes the identities of its trials. It does not write anything. The errors are
// those of [data.Source], and [folder.ErrForeign] or [folder.ErrNotFolder] if the path cannot be the folder of the
// sweep.
func New(ctx context.Context, spec *config.Sweep, o Options) (*Sweep, error) {
	if err := cmp.Or(kernel.Err(), complete(ctx, spec), o.Metrics.Check()); err != nil { // checked here, because otherwise every trial would fail
		return nil, fmt.Errorf("sweep: %w", err)
	}
	if o.Jobs < 1 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	if o.Disk == nil {
		o.Disk = folder.OS{}
	}
	s := &Sweep{Name: spec.Name, Path: o.Out, Keys: spec.Keys, Unfit: slices.Clone(spec.Unfit), split: cmp.Or(spec.Split, data.TestSplit), criteria: spec.Select,
		changes: append([]string{}, spec.Changes...), options: o, rows: map[*data.Images][]float32{}}
	if err := s.measureCriteria(); err != nil {
		return nil, err
	}
	if s.Path == "" {
		s.Path = filepath.Join("sweeps", strings.Map(inFileName, spec.Name))
	}
	if err := checkFolder(s.Path); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, declared := range spec.Trials {
		t, err := s.trial(ctx, declared)
		if err != nil {
			if ctx.Err() != nil {
				err = train.ErrInterrupted
			}
			return nil, err
		}
		if !known[t.ID] {
			known[t.ID] = true
			s.Trials = append(s.Trials, t)
		}
	}
	return s, nil
}

// complete returns an error if an argument is nil.
func complete(ctx context.Context, spec *config.Sweep) error {
	switch {
	case ctx == nil:
		return errors.New("no context: give context.Background()")
	case spec == nil:
		return errors.New("no declaration of a sweep: take one that config.File.Sweep returned")
	case slices.ContainsFunc(spec.Trials, func(t config.Trial) bool { return t.Model == nil || t.Model.Dataset.Source == nil }):
		return errors.New("a trial without a model or its data set: take a sweep that config.File.Sweep returned")
	}
	return nil
}

// measureCriteria adds the selection criteria to the metrics that are measured.
func (s *Sweep) measureCriteria() error {
	if len(s.criteria) == 0 {
		return nil
	}
	if s.options.Metrics == nil {
		s.options.Metrics = metrics.Default()
	}
	for _, c := range s.criteria {
		chosen, err := metrics.Select(c.Metric[strings.LastIndex(c.Metric, ".")+1:])
		if err != nil {
			return fmt.Errorf("sweep: select: %w", err)
		}
		s.options.Metrics = s.options.Metrics.Add(chosen)
	}
	return nil
}

// inFileName replaces characters that are valid in a quoted name in models.toml but not in a file name.
func inFileName(r rune) rune {
	if strings.ContainsRune(`/\:`, r) {
		return '-'
	}
	return r
}

// trial returns a declared trial with its data and its identity.
func (s *Sweep) trial(ctx context.Context, declared config.Trial) (*Trial, error) {
	t := &Trial{Trial: declared}
	d, err := &declared.Model.Dataset, error(nil)
	if t.fitted, err = s.load(ctx, d, d.Need()); err != nil {
		return nil, err
	}
	if t.tested, err = s.load(ctx, d, d.NeedOf(data.TestSplit)); err != nil {
		return nil, err
	}
	images, err := t.tested.Evaluation()
	if err != nil {
		return nil, err
	}
	if s.rows[images] == nil && !images.Sparse() && !images.OnDisk() { // of a sparse matrix few rows are measured
		s.rows[images] = images.Float32()
	}
	if t.ID, err = s.Standalone(t).Identity(); err != nil {
		return nil, err
	}
	t.Path = TrialPath(s.Path, t.ID)
	return t, nil
}

// load reads a data set. Trials with the same source and need share it.
func (s *Sweep) load(ctx context.Context, d *config.Dataset, need data.Need) (*data.Set, error) {
	for _, l := range s.sets {
		if l.need.Equal(need) && reflect.DeepEqual(l.source, d.Source) {
			return l.set, nil
		}
	}
	set, err := data.Load(ctx, d.Source, s.options.Dirs, need)
	if err != nil {
		return nil, err
	}
	set.ReadAtOnce(s.options.Jobs)
	s.sets = append(s.sets, loadedSet{d.Source, need, set})
	return set, nil
}

// State is the state of a trial.
type State string

// The states of a trial.
const (
	Waiting State = "waiting" // not started
	Begun   State = "begun"   // the trial has an unfinished run, which will be resumed
	Done    State = "done"    // the metrics of the trial are stored
)

// State reads the state of a trial from its folder.
func (s *Sweep) State(t *Trial) State {
	switch {
	case s.kept(t) != nil:
		return Done
	case t.Begun():
		return Begun
	}
	return Waiting
}

// foreign is the [folder.ErrForeign] for a folder that cannot become the folder of a sweep.
type foreign struct{ path, problem string }

func (e *foreign) Error() string { return e.path + ": " + e.problem }

func (e *foreign) Is(target error) bool { return target == folder.ErrForeign }

// Dropping is the [folder.ErrForeign] for a folder with results of finished trials that running the sweep would drop
// from its tables; see [Sweep.Replaces] and [Options].Clean.
type Dropping struct{ foreign }

// Interrupted is the [train.ErrInterrupted] of a sweep or of one of its trials. Repeating the call resumes it.
type Interrupted struct{ Path string }

func (e *Interrupted) Error() string { return fmt.Sprintf("%s: %v", e.Path, train.ErrInterrupted) }

func (e *Interrupted) Unwrap() error { return train.ErrInterrupted }

// checkFolder returns an error for a folder that cannot be the folder of a sweep. The folder may be missing, be empty,
// or contain files of a sweep, even of a sweep that was killed while writing its first files.
func checkFolder(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return fmt.Errorf("%s: %w", path, folder.ErrNotFolder)
		}
		return nil // the folder does not exist, or creating it reports the error
	}
	if _, err := os.Stat(filepath.Join(path, folder.Config)); !errors.Is(err, fs.ErrNotExist) {
		return &foreign{path, "is the folder of a run; a sweep needs its own folder"}
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, isSweepFile) {
		return &foreign{path, "is not empty and holds no sweep: neither " + ResultsFile + " nor " + trialsDir + "/"}
	}
	return nil
}

// isSweepFile reports whether only a sweep creates an entry with this name.
func isSweepFile(e fs.DirEntry) bool {
	switch name, begun := strings.CutSuffix(e.Name(), folder.Unfinished); name {
	case ResultsFile, ManifestFile:
		return true
	case TableFile, SummaryFile, TimingsFile:
		return begun // temporary files show that a sweep was killed while writing its first files; complete files of these names may belong to another program
	case trialsDir, FleetDir:
		return e.IsDir()
	}
	return false
}

// Orphans returns the IDs of the trials in the sweep's folder that belong to an earlier declaration or to other data,
// not to the sweep. It does not return folders that are not runs or that contain other files.
func (s *Sweep) Orphans() (ids []string) {
	entries, _ := os.ReadDir(filepath.Join(s.Path, trialsDir)) // the error is ignored, because a new sweep has no folder
	for _, e := range entries {
		id := e.Name()
		known := strings.HasPrefix(id, ".") || slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.ID == id })
		if !known && e.IsDir() && folder.Replaceable(TrialPath(s.Path, id)) && !isEmpty(TrialPath(s.Path, id)) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isEmpty reports whether a folder is empty or unreadable.
func isEmpty(path string) bool {
	entries, _ := os.ReadDir(path)
	return len(entries) == 0
}

// clean removes the orphans, except those that another process is using.
func (w *work) clean() error {
	for _, id := range w.Orphans() {
		path := TrialPath(w.Path, id)
		held, err := folder.Open(path, w.options.Disk)
		if err != nil {
			continue
		}
		err = w.options.Disk.RemoveAll(path)
		_ = held.Close()
		if err != nil {
			return &folder.WriteError{Path: path, Err: err}
		}
	}
	return nil
}

// Replaces returns a [*Dropping] if the folder has results of finished trials that running the sweep would drop from
// its tables. They belong to another sweep, or to this sweep with other changes ([config.Sweep.Changes]). Adding values
// to a declaration drops nothing. An edited declaration replaces its own results; the trials that it no longer has
// become [Sweep.Orphans]. For results of an earlier version the error is an [*EarlierVersion].
func (s *Sweep) Replaces() error {
	old, err := Read(s.Path)
	if _, ok := errors.AsType[*EarlierVersion](err); ok {
		return err
	}
	if err != nil || old.Sweep == s.Name && slices.Equal(old.Changes, s.changes) {
		return nil
	}
	dropped := 0
	for _, row := range old.Trials {
		if row.Metrics != nil && !slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.ID == row.Trial }) {
			dropped++
		}
	}
	if dropped == 0 {
		return nil
	}
	return &Dropping{foreign{s.Path, fmt.Sprintf("holds the results of %d finished trials of sweep %q%s, which sweep %q%s does not have",
		dropped, old.Sweep, with(old.Changes), s.Name, with(s.changes))}}
}

// with formats the changes of a sweep for a message.
func with(changes []string) string {
	if len(changes) == 0 {
		return ""
	}
	return " with " + strings.Join(changes, " ")
}
