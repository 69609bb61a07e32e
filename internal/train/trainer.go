package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tessera/config"
	"tessera/config/part/table"
	"tessera/internal/sealed"
)

// Trainer trains a model step by step for a loop of the caller. It has no folder until [Trainer.Save] writes one. Its steps are those of
// [Run], with hooks, constraints, schedules and clipping, and give the same bytes. Only one goroutine may use it.
type Trainer struct {
	*session
	release func()
	lines   [][]byte // lines of metrics.jsonl
}

// Step describes a step of a [Trainer]. A step of a full-batch optimizer or of a method of package classical is one iteration.
type Step struct {
	Step      int                // number of steps so far
	Epoch     int                // number of complete epochs
	Loss      float64            // objective of the mini-batch before the step; NaN for an iteration
	Terms     map[string]float64 // its weighted terms, by name; nil for an iteration
	EpochDone bool               // the step ended an epoch
	Metrics   Metrics            // metrics of that epoch, if EpochDone
}

// ErrTrained is the error for a step after the last epoch.
var ErrTrained = errors.New("the training is complete: set train.epochs of the model for a longer one")

// NewTrainer returns a trainer of a new model, before its first step. The options Out, Force, Epochs and Group are not used. The errors are
// those of [Run].
func NewTrainer(ctx context.Context, spec *config.Model, o Options) (*Trainer, error) {
	if err := verified(ctx, spec); err != nil {
		return nil, err
	}
	if o.Group != nil {
		return nil, errors.New("train: a trainer is one process: use Run for a group")
	}
	o, release := o.complete()
	s, err := beginSession(ctx, spec, o, nil)
	if err != nil {
		release()
		return nil, err
	}
	now := time.Now()
	s.run, s.began, s.epochFrom = spec.Name, now, now
	return &Trainer{session: s, release: release}, nil
}

// Done reports whether the training is complete: after the last epoch, or if a hook or a converged method has ended it.
func (t *Trainer) Done() bool { return t.finished() }

// Step performs the next step. If ctx is done, it returns [ErrInterrupted] before the step.
func (t *Trainer) Step(ctx context.Context) (step Step, err error) {
	switch {
	case ctx == nil:
		return step, errNoContext
	case t.finished():
		return step, ErrTrained
	case ctx.Err() != nil:
		return step, ErrInterrupted
	}
	if n, ok := t.learner.(*network); ok {
		step, err = t.stepOf(ctx, n)
		if err == nil && step.EpochDone {
			step.Metrics, err = n.finish()
		}
	} else {
		step = Step{Loss: math.NaN(), EpochDone: true}
		step.Metrics, err = t.learner.epoch(ctx, func(func() Metrics) {})
	}
	if errors.Is(err, errHalted) {
		err = ErrInterrupted
	}
	if err == nil && step.EpochDone {
		step.Metrics, err = t.endEpoch(step.Metrics)
	}
	step.Step, step.Epoch = t.progress.Step, t.progress.Epoch
	return step, err
}

func (t *Trainer) stepOf(ctx context.Context, n *network) (step Step, err error) {
	if err := n.advance(ctx); err != nil {
		return step, err
	}
	p := n.last
	step = Step{Loss: p.scalar(p.loss), Terms: map[string]float64{}, EpochDone: n.progress.Position == n.epochImages()}
	for i, at := range p.terms {
		if at >= 0 {
			step.Terms[n.spec.TermName(i)] = p.scalar(at)
		}
	}
	return step, nil
}

// Batch returns the indices of the samples of the last step among the fitted samples; nil after an iteration.
func (t *Trainer) Batch() []int {
	if n, ok := t.learner.(*network); ok && n.taken != nil {
		return slices.Clone(n.taken.indices)
	}
	return nil
}

// Parameters lists the paths of the parameters; nil for a method of package classical.
func (t *Trainer) Parameters() (paths []string) {
	if n, ok := t.learner.(*network); ok {
		for _, p := range n.model.Parameters {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// Parameter returns a copy of the current values of a parameter, such as encoder.0.weight, and its shape.
func (t *Trainer) Parameter(path string) (values []float32, shape []int, err error) {
	n, ok := t.learner.(*network)
	if !ok {
		return nil, nil, fmt.Errorf("train: parameter %q: a model of kind %q has no parameters by path", path, t.spec.Kind)
	}
	p, err := n.model.Parameter(path)
	if err != nil {
		return nil, nil, fmt.Errorf("train: %w", err)
	}
	return slices.Clone(p.Data), slices.Clone(p.Shape), nil
}

// Gradient returns a copy of the gradient of the objective in the last step with respect to a trainable parameter, before clipping and
// hooks. It is nil for a parameter that the objective of the step does not depend on.
func (t *Trainer) Gradient(path string) ([]float32, error) {
	n, ok := t.learner.(*network)
	if !ok || n.last == nil {
		return nil, fmt.Errorf("train: gradient of %q: there was no step of a mini-batch yet", path)
	}
	at := slices.IndexFunc(n.stepper.trainable, func(one *trainable) bool { return one.Path == path })
	if at < 0 {
		return nil, fmt.Errorf("train: gradient: got %q, want the path of a trainable parameter: one of %s", path, table.Quoted(t.Parameters()))
	}
	return slices.Clone(n.last.Gradients()[at]), nil
}

// Trained returns the current model, or that of the best epoch if a hook selects one. Later steps do not change it.
func (t *Trainer) Trained() (*Trained, error) { return t.trained() }

// Save writes the folder of a run: [Open] reads it, and [Resume] continues it exactly from here. The trainer may continue too.
func (t *Trainer) Save(out string, force bool) (err error) {
	before := t.progress.Seconds
	if t.progress.Position > 0 {
		t.progress.Seconds = t.spent()
	}
	files, err := t.firstFiles()
	t.progress.Seconds = before
	if err != nil {
		return err
	}
	o := t.options
	o.Out, o.Force = out, force
	f, err := create(t.spec, o, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, line := range t.lines {
		if err := f.Append(line); err != nil {
			return err
		}
	}
	return f.SyncMetrics()
}

// endEpoch keeps the line of metrics of an epoch, and returns the metrics with its times.
func (t *Trainer) endEpoch(m Metrics) (Metrics, error) {
	if warning := t.watchCodes(m); warning != "" && t.options.Warn != nil {
		t.options.Warn(warning)
	}
	line, err := t.line(&m, 0)
	if err != nil {
		return m, err
	}
	t.lines, t.epochFrom = append(t.lines, sealed.Line(line)), time.Now()
	t.report(m, true)
	return m, nil
}

// Close frees the memory of the trainer. Runs that it saved or returned remain.
func (t *Trainer) Close() error {
	t.close()
	t.release()
	return nil
}
