package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/augment"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/optim"
)

// network learns an auto-encoder batch by batch, by an optimizer that is a rule.
type network struct {
	*trainee
	programs  compiled // for training, by batch size
	loader    *loader
	distorted bool       // a hook changes the images that are encoded
	here      hooks.Step // the present one, for the hooks
}

// newNetwork returns a model with its first parameters, projected, a fresh optimizer and its hooks.
func newNetwork(j *job) (*network, error) {
	t, err := newTrainee(j)
	if err != nil {
		return nil, err
	}
	return &network{trainee: t, distorted: j.spec.Distorted()}, t.attach()
}

// begin implements learner: it prepares a program for each batch size of an epoch, what feeds and watches them, and the first
// batch.
func (n *network) begin(_ context.Context, splits data.Splits, fresh bool) (err error) {
	train := n.spec.Train
	n.programs, err = compileAll(n.model, n.options.Backend, n.request(n.model.Trained()...), n.images.Len(), train.Batch)
	if err != nil {
		return err
	}
	n.loader = &loader{images: n.images, seed: train.Seed, size: min(train.Batch, n.images.Len()), epochs: train.Epochs,
		threads: n.options.Team.Threads(), inputs: map[int][]graph.Input{}}
	for size, p := range n.programs {
		p.follow(n.stepper.moved)
		n.loader.inputs[size] = p.Inputs
	}
	if n.loader.prepared, err = n.around.prepare(n.images, n.programs); err != nil {
		return err
	}
	for _, v := range n.spec.Views {
		chain, err := augment.NewChain(v.Augment, n.images.Shape)
		if err != nil {
			return fmt.Errorf("model %q: %w", n.spec.Name, err)
		}
		n.loader.views = append(n.loader.views, chain)
	}
	n.stepper.beside = n.loader.Fill
	if err := n.ready(splits, fresh); err != nil {
		return err
	}
	n.loader.Start(n.progress.Epoch, n.progress.Position, n.progress.Step)
	return n.fill()
}

// fill makes the first batch; the others are made beside the steps.
func (n *network) fill() error {
	return guard("making the first batch", func() error { n.options.Team.Do(n.loader.Fill); return nil })
}

// close implements learner.
func (n *network) close() {
	_ = n.programs.Close() // what cannot be freed does not make the result wrong
	n.trainee.close()
}

// epoch implements learner: step after step, then what the epoch has come to.
func (n *network) epoch(ctx context.Context, tell func(measure func() Metrics)) (m Metrics, err error) {
	for n.progress.Position < n.images.Len() {
		if ctx.Err() != nil {
			return m, errHalted
		}
		if n.progress.Position == 0 { // a state between two epochs is that of the one which is over
			if err := n.around.each(func(a *attached) error { return a.BeginEpoch() }); err != nil {
				return m, n.failed(err)
			}
		}
		if err := n.step(); err != nil {
			return m, err
		}
		if n.progress.Position < n.images.Len() {
			tell(n.measured)
		}
	}
	return n.finish()
}

// step is one step of training: forward and backward, optimizer, projection. The team prepares the next batch while it
// moves the parameters.
func (n *network) step() error {
	b := n.loader.Take()
	n.here = hooks.Step{Images: b.values[0], Size: b.size}
	if n.distorted {
		n.here.Clean = b.values[targetInput]
	}
	if err := n.around.each(func(a *attached) error { return a.BeforeStep(&n.here) }); err != nil {
		return n.failed(err)
	}
	p := n.programs[b.size]
	if err := p.Run(b.values); err != nil {
		return err
	}
	step := n.progress.Step + 1
	if loss := p.scalar(p.loss); math.IsNaN(loss) || math.IsInf(loss, 0) {
		first, err := n.firstBadForward(b)
		return errors.Join(n.diverged(step, first), err)
	}
	o := n.spec.Optimizer
	n.rate = optim.Rate(n.stepper.optimizer.LearningRate(), o.Schedule.Schedule, o.Schedule.WarmupEpochs, step, n.stepsPerEpoch(), n.spec.Train.Epochs)
	factor := 1.0
	if err := n.around.each(func(a *attached) error { factor *= a.Rate(); return nil }); err != nil {
		return n.failed(err)
	}
	n.rate *= factor
	sound := n.stepper.Step(p.Gradients(), n.rate, step)
	if err := n.stepper.Failed(); err != nil {
		return n.failed(err)
	}
	if !sound {
		return n.diverged(step, p.firstBadBackward())
	}
	p.addTerms(n.progress.Sums, float64(b.size))
	n.progress.Step = step
	n.progress.Position += b.size
	if err := n.around.each(func(a *attached) error { return a.AfterStep() }); err != nil {
		return n.failed(err)
	}
	return nil
}

// targetInput is the place of the clean images among the inputs of a program that learns from distorted ones.
const targetInput = 1

// failed names the run and the step in which something went wrong that is not the numbers'.
func (n *network) failed(err error) error {
	return fmt.Errorf("%s: step %d: %w", n.run, n.progress.Step+1, err)
}
