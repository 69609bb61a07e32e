// Package train fits models and keeps their runs: the loop, checkpoints, early stopping, an exact resume.
//
// A step of an auto-encoder is, in this order: forward and backward on one batch (which an adversary may have attacked), the
// optimizer, the projections; for a full-batch optimizer it is one iteration. A step of a baseline
// is an iteration of its rule. Both are an epoch at the same time. A run's folder holds all
// that is known of it; see package folder for how it survives crashes, and docs for what its files hold. Whatever
// happens, a run that resumes from its last checkpoint reaches the bytes of an uninterrupted one: nothing
// in it depends on time, on the number of threads that project, or on a generator that would have to be saved.
package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/graph"
	"tessera/kernel"
	"tessera/team"
	"tessera/train/folder"
)

// ErrInterrupted says that the context was cancelled: the batch was finished and a checkpoint written, unless the data
// were still being read.
var ErrInterrupted = errors.New("interrupted")

// Options are what a run needs beside its model. None of them but Backend changes a byte of the result.
type Options struct {
	Backend graph.Backend     // runs the programs; nil: the engine on Team, on one goroutine per CPU where that is nil too
	Team    *team.Team        // runs the optimizer and the projections; nil: with a Backend the caller's goroutine alone
	Dirs    data.Dirs         // where data sets are searched
	Load    LoadData          // reads the data set; nil: its source, from Dirs
	Out     string            // the new run's folder; "" takes runs/MODEL, then runs/MODEL-2, ...
	Force   bool              // replace the run that Out holds
	Epochs  int               // of Resume: the run's new number of epochs, also in its config.toml; 0 leaves it as it is
	Warn    func(text string) // told of what does not end a training, but changes its result; may be nil
	Report  func(p Progress)  // called after every epoch, and about every tenth of a second within one; may be nil
	Disk    folder.Disk       // nil: the operating system's
}

// complete returns the options with what runs programs, where they name nothing: the engine on Team, or on a team with one
// goroutine per CPU. release ends that team.
func (o Options) complete() (complete Options, release func()) {
	release = func() {}
	if o.Backend != nil {
		return o, release
	}
	if o.Team == nil {
		o.Team = team.New(0)
		release = o.Team.Close
	}
	o.Backend = engine.Backend{Team: o.Team}
	return o, release
}

// LoadData returns what a data set's source would read for [data.Selection.Need]: several runs at once can share one copy.
type LoadData func(ctx context.Context, d *config.Dataset) (*data.Set, error)

func (o Options) load(ctx context.Context, d *config.Dataset) (*data.Set, error) {
	if o.Load != nil {
		return o.Load(ctx, d)
	}
	return d.Source.Load(ctx, o.Dirs, d.Need())
}

// Progress describes a run in progress.
type Progress struct {
	Run       string // its folder
	Epochs    int    // that it is going to have at most
	Steps     int    // that it is going to have at most
	Iterates  bool   // it is a baseline's fit: what counts as an epoch is an iteration
	EpochDone bool   // Metrics are those of a whole epoch; else of its steps so far, with NaN for what is measured at its end
	Metrics
	Left time.Duration // until the last epoch ends, at the pace so far; early stopping may come first
}

// Result is how a run ended.
type Result struct {
	Run             string // its folder
	Epochs          int    // done, early stopping included
	Step            int    // steps done
	StoppedEarly    bool   // by patience; of a baseline, or by lbfgs: it converged
	BestEpoch       int    // whose parameters best.safetensors holds; 0 without early stopping
	BestError       float64
	AlreadyFinished bool // the run was finished before: nothing was done
}

// Run trains a new run of spec. Its folder is complete, with a checkpoint of step 0, before the first step, or is not
// made at all.
//
// Errors: what data and graph say; [folder.ErrExists] and the others of that package, [*folder.WriteError] when the
// disk is full; [*Diverged]; [ErrInterrupted] after ctx was cancelled. The last good checkpoint is kept in all cases.
func Run(ctx context.Context, spec *config.Model, o Options) (*Result, error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if spec == nil {
		return nil, errors.New("train: no model to train")
	}
	if missing := lacks(spec); missing != "" {
		return nil, fmt.Errorf("train: model %q has no %s; make models with tessera.Load, tessera.Declare or package config, which fill in every default", spec.Name, missing)
	}
	o, release := o.complete()
	defer release()
	s, splits, err := newSession(ctx, spec, o, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.learner.begin(ctx, splits, true); err != nil {
		return nil, halted(err)
	}
	files, err := s.firstFiles()
	if err != nil {
		return nil, err
	}
	if s.folder, err = create(spec, o, files); err != nil {
		return nil, err
	}
	s.run = s.folder.Path()
	return s.train(ctx)
}

// lacks says what is missing that every checked declaration has: spec may have been put together by hand.
func lacks(spec *config.Model) string {
	switch {
	case spec.Dataset.Source == nil:
		return "data set"
	case spec.Baseline != nil:
		return ""
	case len(spec.Encoder) == 0:
		return "encoder"
	case len(spec.Losses) == 0:
		return "loss"
	case spec.Optimizer.Optimizer == nil || spec.Optimizer.Schedule.Schedule == nil:
		return "optimizer or no schedule of it"
	case spec.Train.Batch < 1:
		return "batch size"
	}
	return ""
}

// create makes the new run's folder.
func create(spec *config.Model, o Options, files []folder.File) (*folder.Folder, error) {
	if o.Out != "" {
		return folder.Create(o.Out, o.Force, disk(o), files...)
	}
	name := strings.Map(func(r rune) rune { // a quoted name in models.toml may hold anything
		if strings.ContainsRune(`/\:`, r) {
			return '-'
		}
		return r
	}, spec.Name)
	return folder.CreateNext(filepath.Join("runs", name), disk(o), files...)
}

func disk(o Options) folder.Disk {
	if o.Disk == nil {
		return folder.OS{}
	}
	return o.Disk
}

// Resume continues the run of that folder exactly where its last checkpoint was written; it is a no-op on a finished run. Out and
// Force of the options are not read.
//
// The state knows the declaration that it was trained with: of config.toml train.epochs (of a baseline iterations),
// train.patience, train.min_delta and train.checkpoint_seconds may have been edited since; any other difference is an error
// that lists all of them, key by key. Epochs of the options edits that key.
//
// Errors are those of [Run], and [*checkpoint.Error] for a state that is damaged or does not match its model or data.
func Resume(ctx context.Context, run string, o Options) (*Result, error) {
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	o, release := o.complete()
	defer release()
	held, err := folder.Open(run, disk(o))
	if err != nil {
		return nil, err
	}
	s, err := reopen(ctx, held, o)
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	defer s.close()
	if s.finished() {
		r, err := s.result()
		r.AlreadyFinished = true
		return r, err
	}
	return s.train(ctx)
}

// reopen returns the session of an existing run.
func reopen(ctx context.Context, held *folder.Folder, o Options) (s *session, err error) {
	spec, err := folderOf(held.Path()).config()
	if err != nil {
		return nil, err
	}
	from, err := readState(held.Join(folder.State))
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", held.Path(), err)
	}
	if err := o.edited(held.Path(), spec, from); err != nil {
		return nil, err
	}
	if spec, err = o.lengthen(held, spec, from); err != nil {
		return nil, err
	}
	if over(spec, from.progress) { // without its data, which may be gone
		s, err = finishedSession(spec, from, o)
	} else {
		var splits data.Splits
		if s, splits, err = newSession(ctx, spec, o, from); err == nil {
			err = s.learner.begin(ctx, splits, false)
		}
	}
	if err == nil {
		err = s.repair(held)
	}
	if err != nil {
		if s != nil {
			s.close()
		}
		return nil, halted(err)
	}
	s.folder, s.run = held, held.Path()
	return s, nil
}
