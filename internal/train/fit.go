package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// numbersKey is the metadata key for a baseline's scalar state, as JSON.
const numbersKey = "numbers"

// fit trains a baseline by its own rule: an epoch is one iteration.
type fit struct {
	*job
	model classical.Model
	from  string // file of the restored state, "" for a new fit
}

func newFit(j *job, method classical.Method) (*fit, error) {
	m, err := method.New(j.shape, j.spec.Train.Seed)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", j.spec.Name, err)
	}
	return &fit{job: j, model: m}, nil
}

func (f *fit) begin(ctx context.Context, splits data.Splits, _ bool) error {
	err := f.model.Begin(ctx, splits.Fit)
	var refused *data.Error
	switch {
	case err == nil:
		return f.bounded()
	case errors.Is(err, classical.ErrOtherImages):
		return checkpoint.Mismatchf(f.from, "does not match: %v", classical.ErrOtherImages)
	case errors.As(err, &refused) && refused.Dataset == "":
		return &data.Error{Dataset: f.spec.Dataset.Name, Err: err}
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("model %q: %w", f.spec.Name, err)
}

// bounded returns an error if the values of the images are so large that the initial state overflows.
func (f *fit) bounded() error {
	for name, v := range f.model.State().Numbers {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &data.Error{Dataset: f.spec.Dataset.Name, Problem: fmt.Sprintf("its values are too large: the %s of the initial atoms is %v", name, v)}
		}
	}
	return nil
}

// epoch implements learner. Encoding validation images would take longer than the iteration, so only the objective and the
// atoms are measured.
func (f *fit) epoch(ctx context.Context, _ func(func() Metrics)) (Metrics, error) {
	p, err := f.model.Step(ctx)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return Metrics{}, errHalted
	case errors.Is(err, classical.ErrDiverged):
		return Metrics{}, f.diverged(f.progress.Step+1, bad{"loss", math.NaN()})
	case err != nil:
		return Metrics{}, fmt.Errorf("model %q: %w", f.spec.Name, err)
	}
	f.progress.Epoch, f.progress.Step = p.Iteration, p.Iteration
	f.progress.Stopped = p.Done && p.Iteration < f.training.Most
	if p.Done && f.options.Warn != nil {
		for _, note := range classical.Notes(f.model) {
			f.options.Warn(note)
		}
	}
	return Metrics{Epoch: p.Iteration, Step: p.Iteration, Loss: p.Objective, LearningRate: math.NaN(), Measured: watchedFit(f.model.Atoms()),
		Seconds: f.spent()}, nil
}

// watchedFit returns the watched metrics of a baseline, which depend only on its atoms.
func watchedFit(atoms *metrics.Atoms) metrics.Values {
	var values metrics.Values
	for _, one := range watched {
		v := metrics.NotApplicable("the samples of a baseline are not encoded during the fit")
		if one.metric == "negative_weights" {
			v = metrics.Number(float64(metrics.NegativeWeights(atoms.Values)))
		}
		v.Name = one.key
		values = append(values, v)
	}
	return values
}

func (f *fit) save(file *checkpoint.File) error {
	state := f.model.State()
	numbers, err := json.Marshal(state.Numbers)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	file.Metadata[numbersKey] = string(numbers)
	for _, name := range slices.Sorted(maps.Keys(state.Tensors)) {
		t := state.Tensors[name]
		file.Tensors = append(file.Tensors, checkpoint.Tensor{Name: name, Shape: t.Shape, Data: t.Values})
	}
	return nil
}

func (f *fit) restore(from *stored) error {
	f.from = from.path
	return restoreBaseline(f.model, from.path, from.file)
}

// restoreBaseline sets the state of a baseline from a checkpoint.
func restoreBaseline(m classical.Model, path string, file *checkpoint.File) error {
	state := classical.State{Tensors: map[string]classical.Tensor{}}
	if err := json.Unmarshal([]byte(file.Metadata[numbersKey]), &state.Numbers); err != nil {
		return checkpoint.Errorf(path, "damaged: %s: %v", numbersKey, err)
	}
	for _, t := range file.Tensors {
		if strings.HasPrefix(t.Name, samplesPrefix) {
			continue
		}
		state.Tensors[t.Name] = classical.Tensor{Shape: t.Shape, Values: t.Data}
	}
	if err := m.Restore(state); err != nil {
		return checkpoint.Mismatchf(path, "does not match its model: %v", err)
	}
	return nil
}

func openBaseline(spec *config.Model, method classical.Method, shape []int, path string, file *checkpoint.File) (classical.Model, error) {
	m, err := method.New(shape, spec.Train.Seed)
	if err != nil {
		return nil, checkpoint.Mismatchf(path, "does not match its model: %v", err)
	}
	if kind := file.Metadata[kindKey]; kind != spec.Kind {
		return nil, checkpoint.Mismatchf(path, "does not match its model: got kind %q, want %q", kind, spec.Kind)
	}
	if err := restoreBaseline(m, path, file); err != nil {
		return nil, err
	}
	if a := m.Atoms(); len(a.Values) == 0 {
		return nil, checkpoint.Errorf(path, "contains no atoms yet; resume the run to continue the fit")
	}
	return m, nil
}

// derived implements learner. It returns all tensors, because the codes of the fitted images are part of the model.
func (f *fit) derived() ([]derived, error) {
	file := &checkpoint.File{Metadata: f.metadata("parameters", f.progress.Epoch, f.progress.Step)}
	return []derived{{folder.Model, file}}, f.save(file)
}

// kept implements learner: for a baseline the last iteration always remains.
func (f *fit) kept() (*hooks.BestEpoch, error) { return nil, nil }

func (f *fit) close() {}
