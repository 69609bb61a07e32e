package laws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// Hook contains the laws of hooks. The hook must be registered. It is tested in small trainings of nine steps: of an
// auto-encoder, of a classifier, and of encoders that begin with a decomposition and with `decorrelate`. Models for which the
// hook is not suitable are omitted.
var Hook = inTrials(eachHookTrial, []law[hookTrial]{
	{"trains a model, whose parameters stay finite", with(hookTrial.trains)},
	{"never changes its settings, and trains the same bytes again", with(hookTrial.again)},
	{"gives the same bytes on any number of threads", with(hookTrial.threads)},
	{"resumes to the same bytes after every step", with(hookTrial.resumes)},
	{"gives on two processes what it gives on one, if it is Replicated", hookTrial.replicated},
	{"suits a full-batch optimizer, or says that it needs steps", hookTrial.fullBatch},
})

// hookSteps is the number of steps of a trial.
const hookSteps = 9

type hookTrial struct {
	fresh func() hooks.Hook
	name  string
	model func() config.Model
	load  train.LoadData
	want  func() (*hookRun, error) // trains once on one thread and returns the result
}

func (t hookTrial) String() string            { return t.name }
func (t hookTrial) result() (*hookRun, error) { return t.want() }

// hookRun contains the results of a training that a hook may change.
type hookRun struct {
	model, state []byte // contents of the files
	parameters   tensors
}

func eachHookTrial(fresh func() hooks.Hook, try func(t hookTrial)) error {
	classes := lists.Of(24, func(i int) int32 { return int32(i % 3) })
	images, err := data.FromColumns(data.FloatColumn("images", []int{6}, uniform32(24*6)), data.WholeColumn("labels", nil, classes),
		data.WholeColumn("group", nil, classes))
	if err != nil {
		return err
	}
	load := func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
		if _, ok := d.Source.(*data.Memory); ok {
			return data.Load(ctx, images, data.Dirs{}, d.Need())
		}
		return data.Load(ctx, d.Source, data.Dirs{}, d.Need())
	}
	own := data.Selection{Fit: "train", Labelled: 1, Validation: data.Validation{Fraction: 0.25}}
	bars := config.Dataset{Source: &data.Bars{Count: 24, Seed: 1}, Selection: own}
	dense := func(units int) []config.Layer {
		return []config.Layer{{Layer: &layers.Dense{Units: units, Activation: "sigmoid", Bias: true, Init: &layers.GlorotUniform{}}}}
	}
	trials := []hookTrial{
		{name: "an auto-encoder", model: func() config.Model { return config.Model{Dataset: bars, Encoder: dense(5)} }},
		{name: "a classifier", model: func() config.Model {
			return config.Model{Dataset: config.Dataset{Source: images, Selection: own}, Encoder: dense(5), Decoder: []config.Layer{},
				Heads:  map[string]config.Head{"class": {Layers: dense(3)}},
				Losses: []config.Loss{{On: "class", Loss: &losses.CrossEntropy{}}, {On: losses.Code, Loss: &losses.L1{}}}}
		}},
		{name: "an encoder of a decomposition", model: func() config.Model {
			return config.Model{Dataset: bars, Encoder: append([]config.Layer{{Layer: decomposition()}}, dense(4)...)}
		}},
		{name: "an encoder of decorrelated values", model: func() config.Model {
			return config.Model{Dataset: config.Dataset{Source: images, Selection: own},
				Encoder: append([]config.Layer{{Layer: &layers.Decorrelate{Column: "group"}}}, dense(4)...)}
		}},
		{name: "an encoder of a sparse code", model: func() config.Model {
			return config.Model{Dataset: bars, Encoder: append(dense(6), config.Layer{Layer: &layers.Sparsify{Fraction: 0.5}})}
		}},
	}
	var refused []error
	for _, t := range trials {
		t.fresh, t.load = fresh, load
		if _, err := t.declared(fresh(), nil); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", t.name, err))
			continue
		}
		t.want = sync.OnceValues(func() (*hookRun, error) { return t.trained(train.Options{}) })
		try(t)
	}
	if len(refused) == len(trials) {
		return fmt.Errorf("suits none of the models: %w", errors.Join(refused...))
	}
	return nil
}

// decomposition returns a layer that needs a hook to prepare its images.
func decomposition() layers.Layer {
	l := &layers.PADO{}
	l.Levels, l.Radius, l.Step = 2, 1, 1
	return l
}

// uniform32 draws from [0,1).
func uniform32(n int) []float32 { return converted[float32](uniform(n, 0, 1)) }

func (t hookTrial) declared(h hooks.Hook, optimizer optim.Optimizer) (*config.Model, error) {
	m := t.model()
	m.Hooks = map[string]hooks.Hook{"law": h}
	m.Optimizer.Optimizer = optimizer
	m.Train = config.Train{Epochs: 3, Batch: 6}
	return config.Complete(&m)
}

// trained trains the model with a new hook.
func (t hookTrial) trained(o train.Options) (*hookRun, error) {
	m, err := t.declared(t.fresh(), nil)
	if err != nil {
		return nil, err
	}
	return t.trainedOf(m, o)
}

func (t hookTrial) trainedOf(m *config.Model, o train.Options) (*hookRun, error) {
	return inFolder(func(run string) (*hookRun, error) {
		if err := t.run(context.Background(), m, run, o); err != nil {
			return nil, err
		}
		return readRun(run)
	})
}

func (t hookTrial) run(ctx context.Context, m *config.Model, run string, o train.Options) error {
	_, err := train.Run(ctx, m, t.options(run, o))
	return err
}

func (t hookTrial) options(run string, o train.Options) train.Options {
	o.Out, o.Load, o.Disk = run, t.load, volatileDisk{}
	if o.Backend == nil {
		if o.Team == nil {
			o.Team = workers()
		}
		o.Backend = engine.Backend{Team: o.Team}
	}
	return o
}

// inFolder calls do with the path of a run that it may create.
func inFolder[T any](do func(run string) (T, error)) (result T, err error) {
	dir, err := os.MkdirTemp("", "law")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return do(filepath.Join(dir, "run"))
}

func readRun(run string) (*hookRun, error) {
	model, err := os.ReadFile(filepath.Join(run, folder.Model))
	if err != nil {
		return nil, err
	}
	state, err := os.ReadFile(filepath.Join(run, folder.State))
	if err != nil {
		return nil, err
	}
	trained, err := train.Open(run)
	if err != nil {
		return nil, err
	}
	values := tensors{}
	for _, p := range trained.Parameters {
		values[p.Path] = converted[float64](p.Data)
	}
	return &hookRun{model, state, values}, nil
}

// like returns an error unless two runs are equal.
func (r *hookRun) like(want *hookRun) error {
	switch {
	case string(r.model) != string(want.model):
		return fmt.Errorf("%s has other bytes", folder.Model)
	case string(r.state) != string(want.state):
		return fmt.Errorf("%s has other bytes", folder.State)
	}
	return nil
}

func (t hookTrial) trains(r *hookRun) error {
	return r.parameters.finite()
}

func (t hookTrial) again(want *hookRun) error {
	m, err := t.declared(t.fresh(), nil)
	if err != nil {
		return err
	}
	for i := range 2 {
		r, err := t.trainedOf(m, train.Options{})
		if err != nil {
			return err
		}
		if err := r.like(want); err != nil {
			return fmt.Errorf("training %d with the same hook, compared with one with a new hook: %w", i+1, err)
		}
	}
	other, err := t.declared(t.fresh(), nil)
	if err == nil && !reflect.DeepEqual(m.Hooks["law"], other.Hooks["law"]) {
		return errors.New("its settings are others afterwards")
	}
	return err
}

func (t hookTrial) threads(want *hookRun) error {
	three := team.New(3)
	defer three.Close()
	r, err := t.trained(train.Options{Team: three})
	if err != nil {
		return err
	}
	if string(r.model) != string(want.model) { // the state names the number of threads
		return fmt.Errorf("on three threads, compared with one: %s has other bytes", folder.Model)
	}
	return nil
}

// resumes interrupts a training in every step, except the last one, and resumes it. With -short it takes a step at the beginning and one at
// the end of an epoch.
func (t hookTrial) resumes(want *hookRun) error {
	stride := 1
	if testing.Testing() && testing.Short() {
		stride = 5
	}
	for step := 1; step < hookSteps; step += stride {
		r, err := inFolder(func(run string) (*hookRun, error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			m, err := t.declared(t.fresh(), nil)
			if err != nil {
				return nil, err
			}
			stopping := stopper{engine.Backend{Team: workers()}, new(atomic.Int64), int64(step), cancel}
			err = t.run(ctx, m, run, train.Options{Backend: stopping})
			if err == nil {
				return readRun(run) // the hook ended the training before
			}
			if !errors.Is(err, train.ErrInterrupted) {
				return nil, err
			}
			o := t.options("", train.Options{})
			if _, err := train.Resume(context.Background(), run, o); err != nil {
				return nil, fmt.Errorf("resume: %w", err)
			}
			return readRun(run)
		})
		if err == nil {
			err = r.like(want)
		}
		if err != nil {
			return fmt.Errorf("interrupted in step %d and resumed, compared with no interruption: %w", step, err)
		}
	}
	return nil
}

// replicated compares a training by two processes with a training by one process, up to the order of additions.
func (t hookTrial) replicated() error {
	if _, ok := t.fresh().(hooks.Replicated); !ok {
		return nil
	}
	want, err := t.want()
	if err != nil {
		return err
	}
	groups := collective.Local(2)
	got, err := inFolder(func(run string) (*hookRun, error) {
		errs := make([]error, len(groups))
		var all sync.WaitGroup
		for rank, g := range groups {
			all.Go(func() {
				m, err := t.declared(t.fresh(), nil)
				if err == nil {
					err = t.run(context.Background(), m, run, train.Options{Group: g})
				}
				errs[rank] = err
			})
		}
		if all.Wait(); errors.Join(errs...) != nil {
			return nil, errors.Join(errs...)
		}
		return readRun(run)
	})
	if err != nil {
		return fmt.Errorf("two processes: %w", err)
	}
	if err := got.parameters.near(want.parameters, 1e-4); err != nil {
		return fmt.Errorf("two processes, compared with one: %w", err)
	}
	return nil
}

func (t hookTrial) fullBatch() error {
	m, err := t.declared(t.fresh(), &optim.LBFGS{History: 5, Evaluations: 20})
	var refused *table.Diagnostics
	if _, says := t.fresh().(hooks.NeedsSteps); says {
		if !errors.As(err, &refused) {
			return fmt.Errorf("NeedsSteps, but the declaration with lbfgs gives %v", err)
		}
		return nil
	}
	if errors.As(err, &refused) {
		return nil // something else of this model does not suit
	}
	if err != nil {
		return err
	}
	_, err = inFolder(func(run string) (*hookRun, error) { return nil, t.run(context.Background(), m, run, train.Options{}) })
	if err != nil {
		return fmt.Errorf("with lbfgs: %w; implement hooks.NeedsSteps", err)
	}
	return nil
}

// stopper is a back end that cancels a context in a given step of the training.
type stopper struct {
	engine.Backend
	steps *atomic.Int64
	at    int64
	stop  func()
}

// Compile implements [ir.Backend]. Programs that compute gradients of parameters belong to steps.
func (s stopper) Compile(source ir.Program) (ir.Runner[float32], error) {
	r, err := s.Backend.Compile(source)
	if p, ok := source.(*graph.Program); ok && err == nil {
		for _, b := range p.Parameters {
			if b.Gradient != nil {
				return stoppingRunner{r, s}, nil
			}
		}
	}
	return r, err
}

type stoppingRunner struct {
	ir.Runner[float32]
	stopper
}

func (r stoppingRunner) Run() error {
	if r.steps.Add(1) == r.at {
		r.stop()
	}
	return r.Runner.Run()
}

// volatileDisk is a disk that does not flush files, because they need not survive a crash.
type volatileDisk struct{ folder.OS }

func (volatileDisk) WriteFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func (volatileDisk) Sync(string) error { return nil }
