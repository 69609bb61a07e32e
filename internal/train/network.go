package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/data/augment"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/losses"
	"tessera/optim"
)

// network trains an auto-encoder with a mini-batch optimizer.
type network struct {
	*trainee
	programs  []compiled // training programs, by batch size: one set per player that takes turns, or one for all players
	loader    *loader
	distorted bool       // a hook changes the images that the encoder reads
	last      *program   // program of the last step; nil before the first
	taken     *batch     // its batch
	here      hooks.Step // the current step, as the hooks see it
	between   hooks.Gradients
	before    [][]float32 // the gradients before a hook may have replaced them
	copied    [][]float32 // copies of them, to find a hook that writes to them
	repeated  bool        // a hook has computed the gradients again after another hook got them
}

// newNetwork returns a model with projected initial parameters, a new optimizer and its hooks.
func newNetwork(j *job) (*network, error) {
	t, err := newTrainee(j)
	if err != nil {
		return nil, err
	}
	if err := t.attach(); err != nil {
		return nil, err
	}
	return &network{trainee: t, distorted: j.spec.Distorted()}, nil
}

// begin implements learner: it compiles a program for each batch size of an epoch and prepares the loader, the watcher and
// the first batch.
func (n *network) begin(_ context.Context, splits data.Splits, fresh bool) (err error) {
	train := n.spec.Train
	backend, err := n.backend()
	if err != nil {
		return err
	}
	for _, r := range n.requests() {
		programs, err := compileAll(n.model, backend, r, n.images.Len(), train.Batch)
		if err != nil {
			return err
		}
		n.programs = append(n.programs, programs)
	}
	n.loader = &loader{images: n.images, seed: train.Seed, size: min(train.Batch, n.images.Len()), epochs: train.Epochs, passes: n.passes(),
		threads: n.options.Team.Threads(), inputs: map[int][]graph.Input{}}
	if g := n.processes.group; g != nil {
		n.loader.rank, n.loader.processes = g.Rank(), g.Size()
	}
	for _, programs := range n.programs {
		for size, p := range programs {
			p.follow(n.stepper.trainable)
			n.loader.inputs[size] = p.Inputs // the programs of all players have the same
		}
	}
	if n.loader.prepared, err = n.hooks.prepare(n.images, n.programs...); err != nil {
		return err
	}
	if n.loader.views, err = viewsOf(n.spec, n.images.Shape); err != nil {
		return err
	}
	n.stepper.beside = n.loader.Fill
	if err := n.ready(splits, fresh); err != nil {
		return err
	}
	n.loader.Start(n.progress.Epoch, n.progress.Position, n.progress.Step)
	return n.fill()
}

// requests lists the programs of the steps: one per player that takes turns, or one for all players.
func (n *network) requests() []graph.Request {
	r := n.request(n.model.TrainingOutputs()...)
	if !n.spec.TakesTurns() {
		return []graph.Request{r}
	}
	var list []graph.Request
	for i := range n.stepper.players {
		r.Player = i + 1
		list = append(list, r)
	}
	return list
}

// turn sets the learning rates and step counters of the players for a step, and returns the programs of the player whose turn
// it is, or of all players.
func (n *network) turn(step int, factor float64) compiled {
	turn, own := n.spec.Turn(step)
	for i, p := range n.stepper.players {
		o := p.Optimizer
		p.rate = factor * optim.Rate(p.rule.LearningRate(), o.Schedule.Schedule, o.Schedule.WarmupEpochs, step, n.stepsPerEpoch(), n.spec.Train.Epochs)
		if turn < 0 || turn == i {
			p.step = own
		}
	}
	return n.programs[max(0, turn)]
}

// backend returns the back end for the steps. It computes this process's part of a batch.
func (j *job) backend() (ir.Backend, error) {
	if j.processes.group == nil {
		return j.options.Backend, nil
	}
	return j.options.Backend.WithGroup(j.processes.group)
}

// fill prepares the first batch; later batches are prepared during the steps.
func (n *network) fill() error {
	return guard("making the first batch", func() error { n.options.Team.Do(n.loader.Fill); return nil })
}

func (n *network) close() {
	for _, programs := range n.programs {
		_ = programs.Close() // an error of freeing memory does not affect the result
	}
	n.trainee.close()
}

// epoch implements learner: all steps, then the metrics of the epoch.
func (n *network) epoch(ctx context.Context, report func(measure func() Metrics)) (m Metrics, err error) {
	for n.progress.Position < n.epochImages() {
		if err := n.advance(ctx); err != nil {
			return m, err
		}
		if n.progress.Position < n.epochImages() {
			report(n.measured)
		}
	}
	return n.finish()
}

// advance performs the next step of the epoch, unless ctx has ended in a process: the error is then errHalted.
func (n *network) advance(ctx context.Context) error {
	halted, err := n.processes.answer(ctx)
	if err != nil {
		return err
	}
	if halted {
		return errHalted
	}
	if n.progress.Position == 0 { // a state between two epochs belongs to the completed one
		if err := n.hooks.each(func(a *attached) error { return a.BeginEpoch() }); err != nil {
			return n.failed(err)
		}
	}
	if err := n.processes.ask(ctx); err != nil {
		return err
	}
	if err := n.step(); err != nil || !n.processes.due(n.progress.Step) {
		return err
	}
	return n.processes.compareWeights(n.stepper.views, n.progress.Step)
}

// step performs one training step: forward, backward, optimizer, projection. The team prepares the next batch while it
// updates the parameters.
func (n *network) step() error {
	b, err := n.loader.Take()
	if err != nil {
		return n.failed(err)
	}
	n.here = hooks.Step{Images: b.values[0], Size: b.to - b.from, Epochs: float64(n.progress.Epoch) + float64(n.progress.Position)/float64(n.epochImages())}
	if n.distorted {
		n.here.Clean = b.values[targetInput]
		for i, in := range n.loader.inputs[b.size] {
			if in.Name == graph.Labels {
				n.here.Labels = b.values[i]
			}
		}
	}
	if err := n.hooks.each(func(a *attached) error { return a.BeforeStep(&n.here) }); err != nil {
		return n.failed(err)
	}
	step := n.progress.Step + 1
	factor := 1.0
	if err := n.hooks.each(func(a *attached) error { factor *= a.Rate(); return nil }); err != nil {
		return n.failed(err)
	}
	p := n.turn(step, factor)[b.size]
	n.last, n.taken = p, b
	n.rate = n.stepper.players[0].rate
	n.weigh(p, b.values)
	if err := p.Run(b.values); err != nil {
		return n.failed(err)
	}
	if loss := p.scalar(p.loss); math.IsNaN(loss) || math.IsInf(loss, 0) {
		first, err := n.firstBadForward(b)
		return errors.Join(n.diverged(step, first), err)
	}
	p.addTerms(n.progress.Sums, float64(b.size))
	n.progress.count(p, b.size)
	n.sumWeights(p, b.size)
	unfit := n.adapt(p)
	gradients, err := n.gradients(p, b)
	if err != nil {
		return n.failed(err)
	}
	n.stepper.touched = p.Touched(gradients)
	sound := n.stepper.advance(gradients)
	if err := n.stepper.Failed(); err != nil {
		return n.failed(err)
	}
	if !sound {
		return n.diverged(step, p.firstBadBackward())
	}
	if unfit.tensor != "" {
		return n.diverged(step, unfit)
	}
	n.progress.Step = step
	n.progress.Position += b.size
	if err := n.hooks.each(func(a *attached) error { return a.AfterStep() }); err != nil {
		return n.failed(err)
	}
	return nil
}

// gradients returns the gradients of a step, possibly changed by hooks.
func (n *network) gradients(p *program, b *batch) ([][]float32, error) {
	if !slices.ContainsFunc(n.hooks, func(a *attached) bool { return a.Gradients != nil }) {
		return p.Gradients(), nil
	}
	g := &n.between
	if g.Of == nil {
		for _, m := range n.stepper.trainable {
			g.Of = append(g.Of, m.Parameter)
		}
	}
	g.Values, g.Terms = p.Gradients(), p.Terms()
	// Copies are compared only where they matter, in the first step and if a hook computes the gradients again after others.
	first, earlier, changed := n.copied == nil, 0, "" // changed is the hook that has changed the gradients
	keep := func() {
		if first || n.repeated {
			n.copied = slices.Grow(n.copied, len(g.Values))[:len(g.Values)]
			for i, v := range g.Values {
				n.copied[i] = append(n.copied[i][:0], v...)
			}
		}
	}
	g.Again = func() error {
		n.repeated = n.repeated || earlier > 0
		if changed != "" {
			return fmt.Errorf("a hook computes the gradients again after hook.%s has changed them; its stage must be hooks.Repeat", changed)
		}
		for _, m := range n.stepper.trainable { // pruned weights stay 0
			n.stepper.pass(m, m.Data, 0)
		}
		kept := n.updated(p)
		err := p.Run(b.values)
		for i, u := range p.Updates {
			copy(u.Parameter.Data, kept[i])
		}
		g.Values, g.Terms = p.Gradients(), p.Terms()
		keep()
		return err
	}
	err := n.hooks.each(func(a *attached) error {
		if a.Gradients == nil {
			return nil
		}
		n.before = append(n.before[:0], g.Values...)
		keep()
		if err := a.Gradients(g); err != nil {
			return err
		}
		earlier++
		same := func(x, y []float32) bool { return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0]) }
		equal := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) } // also of NaN
		if !slices.EqualFunc(n.before, g.Values, same) || (first || n.repeated) &&
			!slices.EqualFunc(n.copied, g.Values, func(x, y []float32) bool { return slices.EqualFunc(x, y, equal) }) {
			changed = a.name
		}
		return nil
	})
	return g.Values, err
}

// updated returns copies of the state that running a program changes.
func (n *network) updated(p *program) [][]float32 {
	return lists.Map(p.Updates, func(u graph.Update) []float32 { return slices.Clone(u.Parameter.Data) })
}

// targetInput is the index of the clean images among the inputs of a program with distorted images.
const targetInput = 1

// failed adds the run and the step to an error other than a divergence.
func (n *network) failed(err error) error {
	return fmt.Errorf("%s: step %d: %w", n.run, n.progress.Step+1, err)
}

// adaptive locates the inputs and outputs of an adaptive weight in a program.
type adaptive struct {
	losses.Adaptive
	term, input int // indices of the term in the model and of the weight's input in the program
	unweighted  int // tap of the unweighted term
}

// weigh fills in the adaptive weights for a step.
func (n *network) weigh(p *program, values [][]float32) {
	if len(p.adaptive) > 0 && n.progress.Weights == nil { // the first step of the run
		n.progress.Weights = make([]float64, len(n.spec.Losses))
		for _, a := range p.adaptive {
			n.progress.Weights[a.term] = a.At(0)
		}
	}
	for _, a := range p.adaptive {
		values[a.input][0] = float32(n.progress.Weights[a.term])
	}
}

// sumWeights adds the adaptive weights of the step, multiplied by its number of images, to their sums.
func (n *network) sumWeights(p *program, images int) {
	if len(p.adaptive) > 0 && n.progress.Weighed == nil {
		n.progress.Weighed = make([]float64, len(n.spec.Losses))
	}
	for _, a := range p.adaptive {
		if p.terms[a.term] >= 0 {
			n.progress.Weighed[a.term] += float64(float32(n.progress.Weights[a.term])) * float64(images)
		}
	}
}

// adapt computes the adaptive weights for the next step from the terms of this one. It returns the first non-finite weight.
func (n *network) adapt(p *program) (b bad) {
	for _, a := range p.adaptive {
		if p.terms[a.term] < 0 { // of a player that had no turn
			continue
		}
		weight := n.progress.Weights[a.term]
		value := p.scalar(p.terms[a.term]) / float64(float32(weight))
		if float32(weight) == 0 {
			value = p.scalar(a.unweighted)
		}
		next := a.Next(weight, value)
		if b.tensor == "" && (math.IsNaN(next) || math.IsInf(next, 0)) {
			b = bad{"weight of loss." + n.spec.TermName(a.term), next}
		}
		n.progress.Weights[a.term] = next
	}
	return b
}

// viewsOf returns the augmentations of the views of a model.
func viewsOf(spec *config.Model, shape []int) (chains []*augment.Chain, err error) {
	for _, v := range spec.Views {
		chain, err := augment.NewChain(v.Augment, shape)
		if err != nil {
			return nil, fmt.Errorf("model %q: %w", spec.Name, err)
		}
		chains = append(chains, chain)
	}
	return chains, nil
}
