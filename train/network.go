package train

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/augment"
	"tessera/config"
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
	return &network{trainee: t, programs: compiled{}, distorted: j.spec.Distorted()}, t.attach(false)
}

// begin prepares a program for each batch size of an epoch, what feeds and watches them, and the first batch.
func (n *network) begin(_ context.Context, splits data.Splits) (err error) {
	inputs, sizes := map[int][]graph.Input{}, n.batchSizes()
	for _, size := range sizes {
		p, err := compile(n.model, n.options.Backend, graph.Request{Batch: size, Want: n.model.Trained()})
		if err != nil {
			return err
		}
		p.follow(n.stepper.moved)
		n.programs[size], inputs[size] = p, p.Inputs
	}
	parts, err := decompose(n.images, inputs[sizes[0]])
	if err != nil {
		return err
	}
	n.loader = newLoader(n.images, n.spec.Train.Seed, sizes[0], n.spec.Train.Epochs, n.options.Team.Threads(), inputs)
	n.loader.combine(parts)
	if err := n.feed(inputs[sizes[0]]); err != nil {
		return err
	}
	n.stepper.beside = n.loader.Fill
	if err := n.ready(parts); err != nil {
		return err
	}
	if n.watcher, err = newWatcher(n.shown(), n.options.Backend, splits); err != nil {
		return err
	}
	n.loader.Start(n.progress.Epoch, n.progress.Position, n.progress.Step)
	return n.fill()
}

// fill makes the first batch; the others are made beside the steps. A sampler or an augmentation may be a user's own: its
// panic is an error.
func (n *network) fill() (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("making the first batch panicked: %v", cause)
		}
	}()
	n.options.Team.Do(n.loader.Fill)
	return nil
}

// feed gives the loader what it makes labels and views of, where an input wants them.
func (n *network) feed(inputs []graph.Input) error {
	for _, in := range inputs {
		switch in.Name {
		case graph.Labels:
			n.loader.label()
		case graph.Views:
			chains, err := chainsOf(n.spec.Views, n.images.Shape)
			if err != nil {
				return fmt.Errorf("model %q: %w", n.spec.Name, err)
			}
			n.loader.view(chains)
		}
	}
	return nil
}

// chainsOf returns how the first and the second view of an image are drawn: by one declared view both.
func chainsOf(views []config.View, shape []int) (chains []*augment.Chain, err error) {
	for i := range 2 {
		chain, err := augment.NewChain(views[min(i, len(views)-1)].Augment, shape)
		if err != nil {
			return nil, err
		}
		chains = append(chains, chain)
	}
	return chains, nil
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
			if err := n.around.BeginEpoch(); err != nil {
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
	if err := n.around.BeforeStep(n.stepOf(b)); err != nil {
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
	factor, err := n.around.Rate()
	if err != nil {
		return n.failed(err)
	}
	n.rate = n.learningRate(step) * factor
	sound := n.stepper.Step(p.Gradients(), n.rate, step)
	if err := n.stepper.Failed(); err != nil {
		return n.failed(err)
	}
	if !sound {
		return n.diverged(step, p.firstBadBackward())
	}
	for i, term := range p.terms {
		n.progress.Sums[i] += p.scalar(term) * float64(b.size)
	}
	n.progress.Step = step
	n.progress.Position += b.size
	if err := n.around.AfterStep(); err != nil {
		return n.failed(err)
	}
	return nil
}

// stepOf is a batch as hooks see it.
func (n *network) stepOf(b *batch) *hooks.Step {
	n.here = hooks.Step{Images: b.values[0], Size: b.size}
	if n.distorted {
		n.here.Clean = b.values[targetInput]
	}
	return &n.here
}

// targetInput is the place of the clean images among the inputs of a program that learns from distorted ones.
const targetInput = 1

// learningRate is that of a step, but for what hooks make of it.
func (n *network) learningRate(step int) float64 {
	o := n.spec.Optimizer
	return optim.Rate(n.stepper.optimizer.LearningRate(), o.Schedule.Schedule, o.Schedule.WarmupEpochs, step, n.stepsPerEpoch(), n.spec.Train.Epochs)
}

// failed names the run and the step in which something went wrong that is not the numbers'.
func (n *network) failed(err error) error {
	return fmt.Errorf("%s: step %d: %w", n.run, n.progress.Step+1, err)
}
