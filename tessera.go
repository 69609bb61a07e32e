// Package tessera trains auto-encoders that learn the parts of images, and the methods that they are compared with, declared
// in TOML, and uses what they learned.
//
// It is the entry point for Go programs: models are read with [Load] or [Shipped], trained with [Train], and a trained
// [Run] encodes, decodes and is measured. The packages behind it can be used directly: package config reads
// declarations, graph makes models of them, train trains and keeps runs, metrics measures any coder, data reads images.
// The vocabulary of declarations (layers, losses, constraints, optimizers, data sets) grows by registering parts; see
// docs/adding-a-part.md.
package tessera

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/evaluation"
	"tessera/graph"
	"tessera/internal/machine"
	"tessera/kernel"
	"tessera/metrics"
	"tessera/tape"
	"tessera/team"
	"tessera/train"
)

// Version is that of this module.
const Version = machine.Release

// ModelsFile is the name of the file that declares models.
const ModelsFile = "models.toml"

// shippedName is what messages call the models that come with this package: no file of the user's holds them.
const shippedName = "the shipped models"

//go:embed models.toml
var shipped []byte

// Shipped returns the models that come with this package, those of its models.toml.
func Shipped() *config.File {
	f, err := config.Load(shippedName, shipped)
	if err != nil {
		panic(fmt.Sprintf("tessera: %s: %v", shippedName, err)) // a test reads it
	}
	f.Dirs = data.SearchDirs("")
	return f
}

// Load reads the models of a file. An error of reading it is the operating system's, one of its text is
// [*table.Diagnostics]; errors in models are found by [config.File.Check] and [config.File.Model].
func Load(file string) (*config.File, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := config.Load(file, text)
	if err != nil {
		return nil, err
	}
	f.Dirs = data.SearchDirs("")
	return f, nil
}

// The back ends.
const (
	Engine = "engine" // the graph compiled into a fused plan
	Tape   = "tape"   // Gorgonia's TapeMachine: the reference
)

// Backends lists the back ends, the default first.
func Backends() []string { return []string{Engine, Tape} }

// Declare returns the model of a struct literal with every default in place, checked: [config.Complete] says what it takes.
//
//	model, err := tessera.Declare(config.Model{
//		Dataset: config.Dataset{Source: images}, // of data.FromFloats
//		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 100, Activation: "sigmoid"}}},
//		Train:   config.Train{Epochs: 20},
//	})
func Declare(m config.Model, changes ...config.Set) (*config.Model, error) {
	return config.Complete(&m, changes...)
}

// MostThreads bounds the threads of a run: each has its own buffers, and a typo should not fill the memory. A resumed run may
// need more threads than there are CPUs.
const MostThreads = 1024

// Options say how a model is trained or used. The zero value is ready to use.
type Options struct {
	Images *data.Memory // those of a run whose images a Go program gave, to resume or to evaluate it

	Data    string // the folder in which data are searched first, before $TESSERA_DATA and the user's cache folder
	Out     string // the new run's folder; "" takes runs/MODEL, then runs/MODEL-2, ...
	Force   bool   // replace the run that Out holds
	Threads int    // 0 takes one per CPU; baselines, and what is done beside the programs, take GOMAXPROCS
	Backend string // one of Backends; "" takes the default

	Epochs int // of Resume: the run's new number of epochs, also in its config.toml; 0 leaves it as it is

	Warn   func(text string)    // told of what does not end a training, but changes its result; may be nil
	Report func(train.Progress) // called after every epoch, and about every tenth of a second within one; may be nil
}

// Train trains a new run of a model, keeps it in its folder and returns it. When ctx is done it finishes the batch, writes a
// checkpoint and returns [train.ErrInterrupted]; [Resume] resumes from there. The errors are those of [train.Run].
func Train(ctx context.Context, m *config.Model, o Options) (*Run, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if o.Epochs != 0 {
		return nil, fmt.Errorf("tessera: Epochs: got %d, want 0 for a new run; set Train.Epochs of the model", o.Epochs)
	}
	if m != nil && o.Images == nil {
		o.Images, _ = m.Dataset.Source.(*data.Memory)
	}
	return o.train(func(t train.Options) (*train.Result, error) { return train.Run(ctx, m, t) })
}

// Resume continues the run of that folder exactly where its last checkpoint was written; it is a no-op on a finished run. Threads
// 0 and Backend "" are those with which the run was begun. The errors are those of [train.Resume].
func Resume(ctx context.Context, folder string, o Options) (*Run, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if began, err := train.ArithmeticOf(folder); err == nil { // what is wrong with the run is said when it is opened
		if o.Threads == 0 {
			o.Threads = began.Threads
		}
		if o.Backend == "" && slices.Contains(Backends(), began.Backend) {
			o.Backend = began.Backend
		}
	}
	return o.train(func(t train.Options) (*train.Result, error) { return train.Resume(ctx, folder, t) })
}

// Open returns the run of that folder, finished or not, at its best epoch where early stopping looked for one, else at
// its last checkpoint. The errors are those of [train.Open].
func Open(folder string, o Options) (*Run, error) {
	return o.open(folder, func() (*train.Trained, error) { return train.Open(folder) })
}

// OpenFS is [Open] for a run in a folder of a file system, such as one that the program embeds:
//
//	//go:embed run/config.toml run/model.safetensors
//	var files embed.FS
//
//	run, err := tessera.OpenFS(files, "run", tessera.Options{})
func OpenFS(fsys fs.FS, folder string, o Options) (*Run, error) {
	return o.open(folder, func() (*train.Trained, error) { return train.OpenFS(fsys, folder) })
}

// ReadModel returns the run whose model.safetensors or best.safetensors these bytes are: the file says how its model is
// declared, and its checksum is verified. The errors are those of [train.Read].
func ReadModel(b []byte, o Options) (*Run, error) {
	const name = "model in memory"
	return o.open(name, func() (*train.Trained, error) { return train.Read(name, b) })
}

func (o Options) open(path string, read func() (*train.Trained, error)) (*Run, error) {
	backend, team, err := o.backend()
	if err != nil {
		return nil, err
	}
	t, err := read()
	if err != nil {
		team.Close()
		return nil, err
	}
	return o.newRun(t, path, backend, team), nil
}

func (o Options) train(work func(train.Options) (*train.Result, error)) (*Run, error) {
	backend, team, err := o.backend()
	if err != nil {
		return nil, err
	}
	t := train.Options{Backend: backend, Team: team, Dirs: data.SearchDirs(o.Data), Out: o.Out, Force: o.Force,
		Epochs: o.Epochs, Warn: o.Warn, Report: o.Report}
	if o.Images != nil {
		t.Load = func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
			source, err := o.Images.For(d.Source)
			if err != nil {
				return nil, err
			}
			return source.Load(ctx, t.Dirs, d.Need())
		}
	}
	result, err := work(t)
	if err != nil {
		team.Close()
		return nil, err
	}
	trained, err := train.Open(result.Run)
	if err != nil {
		team.Close()
		return nil, err
	}
	r := o.newRun(trained, result.Run, backend, team)
	r.Result = result
	return r, nil
}

// backend returns the back end and the team of goroutines that it and the optimizer share.
func (o Options) backend() (graph.Backend, *team.Team, error) {
	if o.Backend != "" && !slices.Contains(Backends(), o.Backend) {
		return nil, nil, fmt.Errorf("tessera: unknown back end %q, want one of %q", o.Backend, Backends())
	}
	if o.Threads < 0 || o.Threads > MostThreads {
		return nil, nil, fmt.Errorf("tessera: Threads: got %d, want from 1 to %d, or 0 for one per CPU", o.Threads, MostThreads)
	}
	if err := kernel.Err(); err != nil {
		return nil, nil, fmt.Errorf("tessera: %w", err)
	}
	team := team.New(o.Threads)
	if o.Backend == Tape {
		return tape.Backend{}, team, nil
	}
	return engine.Backend{Team: team}, team, nil
}

// Evaluate is [Run.EvaluateOn] the test images of the data set, or all images where the set has no test split.
func (r *Run) Evaluate(ctx context.Context, chosen metrics.Selection) (*metrics.Result, error) {
	return r.EvaluateOn(ctx, data.TestSplit, chosen)
}

// EvaluateOn measures the run on one split of its data set: the test images, the images that were held out for validation, or
// the fitted ones. Without a selection it measures what `tessera eval` shows, see [metrics.Default]. Data that are missing, do
// not fit or lack labels that a chosen metric needs, and a validation split of a model that holds no images out, are a
// [*data.Error].
func (r *Run) EvaluateOn(ctx context.Context, split data.Split, chosen metrics.Selection) (result *metrics.Result, err error) {
	sample, err := r.sample(ctx, split)
	if err != nil {
		return nil, err
	}
	err = r.computing(func(c metrics.Coder) error {
		result, err = evaluation.Measure(ctx, r.Model, c, sample, chosen)
		return err
	})
	return result, err
}

// Attack measures what attacks do to the run: attacked images are sought at the images that it is evaluated on, the first
// limit of them (0: all). Nothing in it is random. A baseline, which has no gradients, gives [ErrNoGradients].
func (r *Run) Attack(ctx context.Context, attacks []attack.Attack, limit int) (*attack.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.attacked(func(attack.Target) error { return nil }); err != nil { // before images are read
		return nil, err
	}
	images, err := r.Images(ctx)
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		images = images.Slice(0, min(limit, images.Len()))
	}
	var report *attack.Report
	err = r.attacked(func(target attack.Target) error {
		report, err = attack.Measure(ctx, target, images.Float32(), attacks)
		return err
	})
	if err != nil {
		return nil, err
	}
	report.Model, report.Dataset = r.Model.Name, r.Model.Dataset.Name
	return report, nil
}

// ErrNoGradients says that a model cannot be attacked: it is a baseline.
var ErrNoGradients = errors.New("it has no gradients to attack it with")

// Images returns what the run is evaluated on: the test images of its data set, all images where the set has no test split.
// Data that are missing or do not fit are a [*data.Error].
func (r *Run) Images(ctx context.Context) (*data.Images, error) {
	s, err := r.sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	return s.Images, nil
}

// sample reads the images of a split.
func (r *Run) sample(ctx context.Context, split data.Split) (*evaluation.Sample, error) {
	set, err := r.load(ctx, split)
	if err != nil {
		return nil, err
	}
	return evaluation.Take(set, r.Model, r.Shape(), split)
}

// FoundPart is a true part of a data set and the atom that is most like it.
type FoundPart struct {
	Kind string // what the part is: "limb"
	metrics.Part
}

// Parts looks for the true parts of the run's data set among its atoms and its bias: found is a cosine similarity of
// at least [metrics.PartCosine]. It returns nil where the true parts are not known or the decoder has no atoms.
func (r *Run) Parts(ctx context.Context) ([]FoundPart, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	atoms := r.Atoms()
	if atoms == nil {
		return nil, nil
	}
	if data.HasTest(r.Model.Dataset.Source) { // published images: nobody knows their parts
		return nil, nil
	}
	set, err := r.load(ctx, data.TestSplit)
	if err != nil || len(set.Parts) == 0 {
		return nil, err
	}
	table, err := metrics.PartsRecovered(set.Parts, atoms, metrics.PartCosine)
	if err != nil {
		return nil, err
	}
	found := make([]FoundPart, len(table))
	for i, p := range table {
		found[i] = FoundPart{Kind: set.Kinds[i], Part: p}
	}
	return found, nil
}

// load reads the images of a split.
func (r *Run) load(ctx context.Context, split data.Split) (*data.Set, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	source := r.Model.Dataset.Source
	if source == nil {
		return nil, errors.New("tessera: the model has no data set")
	}
	if r.options.Images != nil {
		var err error
		if source, err = r.options.Images.For(source); err != nil {
			return nil, err
		}
	}
	return source.Load(ctx, r.dirs, data.NeedOf(source, r.Model.Dataset.Selection, split))
}

// Plan prints how the engine runs one training step of a model: every step with its shapes, bytes and FLOPs.
func Plan(m *graph.Model) (string, error) {
	if m == nil || m.Spec == nil {
		return "", errors.New("tessera: no model to plan: make one with graph.New")
	}
	p, err := m.Program(graph.Request{Batch: m.Spec.Train.Batch, Want: m.Trained(), Prepared: true})
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
	return plan.String(), nil
}
