// Package train trains models and manages their runs: the training loop, checkpoints, exact resume.
//
// [Run] trains a new run, [Resume] continues one, and [Open] reads its model.
//
// A step of an auto-encoder consists of a forward and a backward pass on one mini-batch (which may contain adversarial
// examples), the update by the optimizer, and the projections. With a full-batch optimizer a step is one iteration, and for a
// baseline one iteration of its rule; in both cases it counts as an epoch. All files of a run are in its folder: package
// folder describes how they survive crashes, docs/run-folder.md describes the files. A run that resumes from its last
// checkpoint gives the same bytes as an uninterrupted run: the result does not depend on time, on the number of threads of the
// optimizer, or on the state of a random generator.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/train/folder"
)

// ErrInterrupted is returned after the context was cancelled. The current batch was completed and a checkpoint written,
// unless the data were still being read.
var ErrInterrupted = errors.New("interrupted")

var errNoContext = errors.New("train: no context (got nil); give context.Background()")

var errNoModel = errors.New("train: the model is nil")

// Options are the options of a run. Only Backend and the size of Group affect the bytes of the result.
type Options struct {
	Backend ir.Backend        // runs the programs; if nil, the engine on Team, or on one goroutine per CPU if Team is nil too
	Team    *team.Team        // runs the optimizer and the projections; if nil and Backend is set, only the caller's goroutine
	Dirs    data.Dirs         // folders of the data sets
	Load    LoadData          // reads the data set; if nil, the source of the data set reads it from Dirs
	Start   string            // folder of the run that provides the initial parameters of a new run; "" for the run that the model declares
	Out     string            // folder of the new run; "" selects runs/MODEL, or runs/MODEL-2, ...
	Force   bool              // replace an existing run in Out, by default in runs/MODEL
	Epochs  int               // new number of epochs for Resume, which also writes it to config.toml; 0 for no change
	Warn    func(text string) // called for problems that affect the result but do not end the training; may be nil
	Report  func(p Progress)  // called after every epoch, and about every tenth of a second within one; may be nil
	Disk    folder.Disk       // file system; nil for that of the operating system

	// Group consists of the processes that train the run together, nil for a single process. All of them call Run or Resume
	// with equal arguments. Each process computes a part of every batch; the loss and the gradients are those of the complete
	// batch. Rank 0 writes the folder and calls Report. Other processes may pass a nil model and "" for the folder: they use
	// those of rank 0.
	Group          collective.Group
	ShardOptimizer bool // each process stores and updates a part of the optimizer's state; the bytes of the result do not change
	CheckWeights   int  // steps between two comparisons of the weights of all processes; 0 for [DefaultCheckWeights], negative for never

	origin Environment // environment of a resumed run, which records the paths of its data
}

// complete sets the default back end: the engine on Team, or on a new team with one goroutine per CPU. release ends the new
// team.
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

// LoadData returns the images that training needs ([data.Selection.Need]) from the data set's source. Concurrent runs can
// share one copy.
type LoadData func(ctx context.Context, d *config.Dataset) (*data.Set, error)

func (o Options) load(ctx context.Context, d *config.Dataset) (*data.Set, error) {
	if o.Load != nil {
		return o.Load(ctx, d)
	}
	return data.Load(ctx, o.origin.Placed(d.Source), o.origin.Dirs(o.Dirs), d.Need())
}

// Progress is the progress of a run.
type Progress struct {
	Run       string // folder of the run
	Epochs    int    // maximum number of epochs
	Steps     int    // maximum number of steps
	Iterates  bool   // the run fits a baseline, whose epochs are iterations
	Vectors   bool   // the samples are vectors, not images
	EpochDone bool   // Metrics cover a complete epoch; otherwise they cover its steps so far, with NaN for metrics that are measured at the end
	Metrics
	Left time.Duration // estimated time until the last epoch ends; early stopping may end the run sooner
}

// Result describes how a run ended.
type Result struct {
	Run             string // folder of the run
	Epochs          int    // number of trained epochs, fewer after early stopping
	Step            int    // number of steps
	StoppedEarly    bool   // the run ended early: by early stopping, or because a baseline or lbfgs converged
	BestEpoch       int    // epoch of best.safetensors; 0 without early stopping
	BestError       float64
	AlreadyFinished bool     // the run was already finished, and nothing was done
	Trained         *Trained // the model that [Open] reads from the folder; nil in processes other than rank 0
}

// Run trains a new run of spec. Before the first step its folder is complete, with a checkpoint of step 0. If an error occurs
// before, no folder remains.
//
// Errors: those of [config.Model.Verify] and of packages data and graph; [folder.ErrExists] and the other errors of package
// folder, [*folder.WriteError] if the disk is full; [*Diverged]; [ErrInterrupted] after ctx was cancelled. The last complete
// checkpoint always remains.
func Run(ctx context.Context, spec *config.Model, o Options) (r *Result, err error) {
	defer data.Unread(&err)
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	spec, err = o.declared(spec)
	if err == nil {
		err = verified(ctx, spec)
	}
	if err != nil {
		return nil, err
	}
	return trainNew(ctx, spec, o)
}

// verified returns an error for a model, or a processor, that cannot train.
func verified(ctx context.Context, spec *config.Model) error {
	switch {
	case ctx == nil:
		return errNoContext
	case spec == nil:
		return errNoModel
	}
	if err := errors.Join(kernel.Err(), spec.Verify()); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// trainNew trains a new run of a verified model.
func trainNew(ctx context.Context, spec *config.Model, o Options) (*Result, error) {
	o, release := o.complete()
	defer release()
	if err := o.together(spec); err != nil {
		return nil, err
	}
	s, err := beginSession(ctx, spec, o, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	files, err := s.firstFiles()
	if err != nil {
		return nil, err
	}
	if s.processes.leads() {
		if s.folder, err = create(spec, o, files); err != nil {
			return nil, err
		}
		s.run = s.folder.Path()
	}
	return s.train(ctx)
}

func create(spec *config.Model, o Options, files []folder.File) (*folder.Folder, error) {
	if o.Out != "" || o.Force {
		return folder.Create(cmp.Or(o.Out, Place(spec.Name)), o.Force, disk(o), files...)
	}
	return folder.CreateNext(Place(spec.Name), disk(o), files...)
}

// Place returns the default folder for the first run of a model: runs/MODEL.
func Place(model string) string {
	return filepath.Join("runs", strings.Map(func(r rune) rune { // a quoted name in models.toml may contain any character
		if strings.ContainsRune(`/\:`, r) {
			return '-'
		}
		return r
	}, model))
}

func disk(o Options) folder.Disk {
	if o.Disk == nil {
		return folder.OS{}
	}
	return o.Disk
}

// Resume continues a run exactly from its last checkpoint. For a finished run it does nothing. It ignores the options Out and
// Force.
//
// The state contains the declaration of the run. In config.toml train.epochs (for a baseline iterations),
// train.checkpoint_seconds and the keys of hook.early_stopping may be edited before a resume; any other difference is an error
// that lists all differing keys. The option Epochs edits train.epochs. A run whose last checkpoint is within an epoch must
// complete that epoch: for a smaller number of epochs Resume returns a [part.KeyError].
//
// The errors are those of [Run], [*checkpoint.Error] for a state that is damaged or does not match its model or data, and
// [*FormatError] for a state of another version.
func Resume(ctx context.Context, run string, o Options) (r *Result, err error) {
	defer data.Unread(&err)
	if err := kernel.Err(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if ctx == nil {
		return nil, errNoContext
	}
	o, release := o.complete()
	defer release()
	held, done, err := o.processes().open(run, disk(o))
	if err != nil {
		done()
		return nil, err
	}
	s, err := reopen(ctx, held, o)
	done() // a killed process leaves no copy
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	defer s.close()
	if s.finished() {
		r, err := s.result()
		if err != nil {
			return nil, err
		}
		r.AlreadyFinished = true
		return r, nil
	}
	return s.train(ctx)
}

// declaredIn returns the declaration and the state of a run, and the files that the option Epochs changes.
func (o Options) declaredIn(held *folder.Folder) (spec *config.Model, from *stored, edited []folder.File, err error) {
	if spec, err = folderOf(held.Path()).config(); err != nil {
		return nil, nil, nil, err
	}
	if from, err = readState(held.Join(folder.State)); err != nil {
		return nil, nil, nil, fmt.Errorf("run %s: %w", held.Path(), err)
	}
	if err := o.edited(held.Path(), spec, from); err != nil {
		return nil, nil, nil, err
	}
	if spec, edited, err = o.lengthen(held, spec, from); err != nil {
		return nil, nil, nil, err
	}
	return spec, from, edited, enough(held.Path(), spec, from)
}

// reopen returns a session for an existing run.
func reopen(ctx context.Context, held *folder.Folder, o Options) (s *session, err error) {
	spec, from, edited, err := o.declaredIn(held)
	if err != nil {
		return nil, err
	}
	if err := o.together(spec); err != nil {
		return nil, err
	}
	o.origin = Origin(held.Path(), spec.Dataset.Source, o.Warn)
	if over(spec, from.progress) { // without its data, which may have been deleted
		s, err = finishedSession(spec, from, o)
	} else {
		s, err = beginSession(ctx, spec, o, from)
	}
	if err == nil && s.processes.leads() {
		if err = s.repair(held); err == nil { // a run that cannot continue keeps its declaration
			err = held.Write(edited...)
		}
	}
	if err != nil {
		if s != nil {
			s.close()
		}
		return nil, halted(err)
	}
	s.folder = held
	if s.processes.leads() {
		s.run = held.Path()
	}
	return s, nil
}
