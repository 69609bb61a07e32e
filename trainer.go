package tessera

import (
	"context"

	"tessera/config"
	"tessera/internal/coder"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
)

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
