// Package tessera trains and uses auto-encoders that learn the parts of images, and the baselines with which they are
// compared. Models are declared in TOML.
//
// It is the entry point for Go programs: models are read with [Load] or [Shipped], trained with [Train], and a trained [Run]
// encodes, decodes and is measured. The other packages can also be used directly: package config reads declarations, graph
// makes models of them, train trains models and manages their runs, metrics measures any coder, data reads images. New
// layers, losses, constraints, optimizers and data sets are added by registering them; see docs/adding-a-part.md.
package tessera

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/coder"
	"tessera/internal/engine"
	"tessera/internal/machine"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/regular"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
)

// Version is the version of this module.
const Version = machine.Release

// ModelsFile is the name of the file that declares models.
const ModelsFile = "models.toml"

// ShippedName is the name of the models in this package's models.toml in messages, because no file of the user contains them.
const ShippedName = "the shipped models"

//go:embed models.toml
var shipped []byte

// Shipped returns the models in this package's models.toml.
func Shipped() *config.File {
	f := parsed().Clone()
	f.Dirs = data.SearchDirs("")
	return f
}

// parsed reads the models of this package once.
var parsed = sync.OnceValue(func() *config.File {
	f, err := config.LoadValid(ShippedName, shipped)
	if err != nil {
		panic(fmt.Sprintf("tessera: %s: %v", ShippedName, err)) // a test reads it
	}
	return f
})

// Load reads the models of a file, which adds to the shipped models: see [config.File.Extend]. It returns the error of the
// operating system if the file cannot be read, and [*table.Diagnostics] for errors in its text. [config.File.Check] and
// [config.File.Model] find errors in models.
func Load(file string) (*config.File, error) {
	text, err := regular.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := config.Load(file, text)
	if err != nil {
		return nil, err
	}
	f.Extend(Shipped())
	f.Dirs = data.SearchDirs("")
	return f, nil
}

// The back ends: Engine runs an optimised plan compiled from the graph, Tape runs Gorgonia's TapeMachine, the reference.
const (
	Engine = coder.Engine
	Tape   = coder.Tape
)

// Backends lists the back ends, the default first.
func Backends() []string { return coder.Backends() }

// Declare returns the checked model of a struct literal, with every default filled in; see [config.Complete].
//
//	model, err := tessera.Declare(config.Model{
//		Dataset: config.Dataset{Source: images}, // of data.FromFloats
//		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 100, Activation: "sigmoid"}}},
//		Train:   config.Train{Epochs: 20},
//	})
func Declare(m config.Model, changes ...config.Set) (*config.Model, error) {
	return config.Complete(&m, changes...)
}

// MostThreads is the maximum number of threads of a run.
const MostThreads = coder.MostThreads

// Options are the options of training and using a model. The zero value is ready to use.
type Options struct {
	Images *data.Memory // images of a run that was trained on images of a Go program; needed to resume or evaluate the run

	Data    string // folder in which data files are searched first, before $TESSERA_DATA and the user's cache folder
	Out     string // folder of the new run; "" selects runs/MODEL, or runs/MODEL-2, ...
	Force   bool   // replace an existing run in Out, by default in runs/MODEL
	Threads int    // number of threads; 0 means one per CPU, or per fast core where cores differ; baselines, and all work outside of the programs, use GOMAXPROCS
	Backend string // one of [Backends]; "" selects the default

	// Raw opens a run without its calibrations and thresholds (posthoc.json).
	Raw bool

	Epochs int // new number of epochs for Resume, which also writes it to the run's config.toml; 0 for no change

	// Group contains the processes that train a run together (package mpi); nil for a single process; see [train.Options].
	// Threads is the number for each process. Processes other than rank 0 may pass a nil model and any folder; their Run has a
	// Result and no model.
	Group          Group
	ShardOptimizer bool // each process stores a part of the optimizer's state
	CheckWeights   int  // steps between two comparisons of the weights; 0 for [train.DefaultCheckWeights], negative for never

	Warn   func(text string) // called for problems that do not prevent a training or the opening of a run; may be nil
	Report func(Progress)    // called after every epoch, and about ten times per second within one; may be nil
}

// Train trains a new run of a model, saves it in its folder and returns it. If ctx is done, Train finishes the batch, writes
// a checkpoint, and returns the run of that checkpoint and [ErrInterrupted]; [Resume] continues it. The run is nil if no data were
// read yet, and next to every other error. The other errors are the errors of [train.Run].
func Train(ctx context.Context, m *config.Model, o Options) (*Run, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if o.Epochs != 0 {
		return nil, fmt.Errorf("tessera: Epochs: got %d, want 0 for a new run; set Train.Epochs of the model", o.Epochs)
	}
	o = o.withImages(m)
	return o.train(func(t train.Options) (*train.Result, error) { return train.Run(ctx, m, t) })
}

// withImages returns the options with the images in memory of a model, if it has any.
func (o Options) withImages(m *config.Model) Options {
	if m != nil && o.Images == nil {
		o.Images, _ = m.Dataset.Source.(*data.Memory)
	}
	return o
}

// Resume continues the run in a folder exactly from its last checkpoint; a finished run is not changed. By default, Threads
// and Backend have the values with which the run was started. The errors are the errors of [train.Resume].
func Resume(ctx context.Context, run string, o Options) (*Run, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	o, err := o.allAsBegun(run)
	if err != nil {
		return nil, err
	}
	return o.train(func(t train.Options) (*train.Result, error) { return train.Resume(ctx, run, t) })
}

// allAsBegun returns, in all processes, the result of [Options.asBegun] on rank 0, which can read the run.
func (o Options) allAsBegun(run string) (Options, error) {
	if o.Group == nil {
		return o.asBegun(run), nil
	}
	begun := make([]byte, 3)
	if o.Group.Rank() == 0 {
		o = o.asBegun(run)
		binary.LittleEndian.PutUint16(begun, uint16(o.Threads))
		begun[2] = byte(slices.Index(Backends(), o.Backend))
	}
	if err := o.Group.Broadcast(0, begun); err != nil {
		return o, err
	}
	o.Threads, o.Backend = int(binary.LittleEndian.Uint16(begun)), ""
	if i := int(begun[2]); i < len(Backends()) {
		o.Backend = Backends()[i]
	}
	return o, nil
}

// asBegun returns the options with Threads and Backend, unless they are set, as when the run was started. It ignores a run
// that cannot be read: [train.Resume] reports it.
func (o Options) asBegun(run string) Options {
	if o.Threads != 0 && o.Backend != "" {
		return o
	}
	began, err := train.ArithmeticOf(run)
	if err != nil {
		return o
	}
	if o.Threads == 0 {
		o.Threads = began.Threads
	}
	if o.Backend == "" && slices.Contains(Backends(), began.Backend) {
		o.Backend = began.Backend
	}
	return o
}

// Open returns the run in a folder, finished or not: the parameters of the best epoch if early stopping is used, else of the
// last checkpoint. The run reads its data from the paths of the training, for any working directory. The errors are the errors
// of [train.Open].
func Open(folder string, o Options) (*Run, error) {
	r, err := o.open(folder, func() (*train.Trained, error) { return train.Open(folder) })
	if err == nil {
		r.Origin = train.Origin(folder, r.Model.Dataset.Source, o.Warn)
	}
	return r, err
}

// OpenFS is like [Open], for a run in a folder of a file system, such as files that the program embeds:
//
//	//go:embed run/config.toml run/model.safetensors
//	var files embed.FS
//
//	run, err := tessera.OpenFS(files, "run", tessera.Options{})
func OpenFS(fsys fs.FS, folder string, o Options) (*Run, error) {
	return o.open(folder, func() (*train.Trained, error) { return train.OpenFS(fsys, folder) })
}

// ReadModel returns the run of a model.safetensors or best.safetensors from its bytes. The file contains the declaration of
// its model; its checksum is verified. The errors are the errors of [train.Read].
func ReadModel(b []byte, o Options) (*Run, error) {
	const name = "model in memory"
	return o.open(name, func() (*train.Trained, error) { return train.Read(name, b) })
}

func (o Options) open(path string, read func() (*train.Trained, error)) (*Run, error) {
	c, t, err := coder.Open(path, o.Backend, o.Threads, o.Raw, read)
	if err != nil {
		return nil, err
	}
	return o.newRun(c, t, path), nil
}

// training returns the options of package train, and the goroutines that a training shares.
func (o Options) training() (train.Options, *team.Team, error) {
	backend, team, err := coder.Backend(o.Backend, o.Threads)
	t := train.Options{Backend: backend, Team: team, Dirs: data.SearchDirs(o.Data), Out: o.Out, Force: o.Force,
		Epochs: o.Epochs, Warn: o.Warn, Report: o.Report, Group: o.Group, ShardOptimizer: o.ShardOptimizer, CheckWeights: o.CheckWeights}
	if o.Images != nil {
		t.Load = func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
			source, err := o.Images.For(d.Source)
			if err != nil {
				return nil, err
			}
			return data.Load(ctx, source, t.Dirs, d.Need())
		}
	}
	return t, team, err
}

func (o Options) train(work func(train.Options) (*train.Result, error)) (*Run, error) {
	t, team, err := o.training()
	if err != nil {
		return nil, err
	}
	result, err := work(t)
	if stop, ok := errors.AsType[*train.Interruption](err); ok && (o.Group == nil || o.Group.Rank() == 0) {
		if trained, other := train.Open(stop.Run); other == nil {
			result = &train.Result{Run: stop.Run, Epochs: trained.Epoch, Step: stop.Step, Trained: trained}
		}
	}
	if result == nil {
		team.Close()
		return nil, err
	}
	of := coder.Options{Path: result.Run, Backend: t.Backend, BackendName: o.Backend, Team: team}
	r := o.newRun(coder.New(result.Trained, of), result.Trained, result.Run)
	if r.Result = result; r.Model != nil { // rank 0 has it
		r.Origin = train.Origin(result.Run, r.Model.Dataset.Source, nil)
	}
	return r, err
}

// Plan returns a description of how the engine runs one training step of a model: every operation with its shapes, bytes and
// FLOPs, and the data that two processes exchange in a distributed training.
func Plan(m *graph.Model) (string, error) {
	if m == nil || m.Spec == nil {
		return "", errors.New("tessera: no model to plan: make one with graph.New")
	}
	p, err := m.Program(graph.Request{Batch: m.Spec.Train.Batch, Want: m.TrainingOutputs(), Prepared: true})
	if err != nil {
		return "", err
	}
	program, err := p.Module()
	if err != nil {
		return "", err
	}
	team := team.New(0)
	defer team.Close()
	plan, err := engine.Compile[float32](program, team)
	if err != nil {
		return "", err
	}
	defer plan.Close()
	traffic, err := engine.Traffic(program, 2)
	if err != nil {
		return "", err
	}
	return plan.String() + traffic, nil
}

// Types and errors of trainings, for programs outside of this module.
type (
	// Progress is the progress of a training, which [Options].Report gets: Epoch, Epochs, Step, Steps, EpochDone, Metrics, Left.
	Progress = train.Progress
	// Result describes how a training ended: Run, Epochs, Step, StoppedEarly, BestEpoch, AlreadyFinished.
	Result = train.Result
	// Step describes a step of a [Trainer]: Loss, Terms, Step, Epoch, EpochDone and the Metrics of a complete epoch.
	Step = train.Step
	// Diverged is the error of a training with a value that is not finite: Run, Epoch, Step, Tensor, Value.
	Diverged = train.Diverged
	// Interruption is the [ErrInterrupted] of a training that has written a checkpoint: Run, Step, Epoch.
	Interruption = train.Interruption
	// Group consists of the processes that train a run together, for [Options].
	Group = collective.Group
	// Sample is a split of the data set of a run, which [Run.Sample] reads: Split, Name, Images, Range.
	Sample = evaluation.Sample
	// Report is what [Run.Report] measures: Result, Fitted, HeldOut, Note.
	Report = evaluation.Report
)

// Errors of trainings.
var (
	ErrInterrupted = train.ErrInterrupted // the context was cancelled
	ErrTrained     = train.ErrTrained     // a [Trainer] has no further step
)

// Trainer trains a model for a loop of the caller, without a folder:
//
//	t, err := tessera.NewTrainer(ctx, model, tessera.Options{})
//	for !t.Done() {
//		step, err := t.Step(ctx) // step.Loss, step.Terms, step.EpochDone, step.Metrics
//		...                      // t.Batch(), t.Parameter("encoder.0.weight"), t.Gradient("encoder.0.weight")
//	}
//	err = t.Save("runs/mine", false)
//
// Its steps are those of [Train], with hooks, constraints, schedules and clipping, and give the same bytes. The batches come from the data
// set of the model, such as the images of [data.FromFloats], in the order of its seed. Only one goroutine may use a Trainer.
type Trainer struct {
	*train.Trainer
	options Options
	team    *team.Team
}

// NewTrainer returns a trainer of a new model before its first step; the caller closes it. The options Out, Force and Epochs are not used,
// and Group is an error. The other errors are those of [Train].
func NewTrainer(ctx context.Context, m *config.Model, o Options) (*Trainer, error) {
	o = o.withImages(m)
	t, team, err := o.training()
	if err != nil {
		return nil, err
	}
	of, err := train.NewTrainer(ctx, m, t)
	if err != nil {
		team.Close()
		return nil, err
	}
	return &Trainer{of, o, team}, nil
}

// Run returns the current model as a run in memory, or that of the best epoch if a hook selects one. Later steps do not change it. It has no
// folder: Save writes one.
func (t *Trainer) Run() (*Run, error) {
	trained, err := t.Trained()
	if err != nil {
		return nil, err
	}
	backend, team, err := coder.Backend(t.options.Backend, t.options.Threads)
	if err != nil {
		return nil, err
	}
	path := "trainer of " + trained.Spec.Name
	return t.options.newRun(coder.New(trained, coder.Options{Path: path, Backend: backend, BackendName: t.options.Backend, Team: team}), trained, path), nil
}

// Close frees the memory and the goroutines of the trainer. Its runs remain.
func (t *Trainer) Close() error {
	err := t.Trainer.Close()
	t.team.Close()
	return err
}
