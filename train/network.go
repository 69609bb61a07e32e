package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tessera/data"
	"tessera/graph"
	"tessera/optim"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// network learns an auto-encoder along gradients.
type network struct {
	*session
	model     *graph.Model
	stepper   *stepper
	programs  compiled   // for training, by batch size
	average   *averages  // nil where the model is that of the last step
	pruned    []pruned   // by phase
	adversary *adversary // nil where the images stay clean
	watcher   *watcher
	loader    *loader
	best      [][]float32 // the parameters of the best epoch; nil without early stopping
	rate      float64     // of the last step
}

// newNetwork returns a model with its first parameters, projected, and a fresh optimizer.
func newNetwork(s *session) (*network, error) {
	m, err := graph.New(s.spec, s.shape)
	if err != nil {
		return nil, err
	}
	n := &network{session: s, model: m, stepper: newStepper(m, s.options.Team), programs: compiled{},
		pruned: make([]pruned, len(s.spec.Prune))}
	n.stepper.Project()
	n.averaged()
	s.progress.Sums = make([]float64, len(s.spec.Losses))
	if s.spec.Train.Patience > 0 {
		for _, p := range m.Parameters {
			n.best = append(n.best, make([]float32, len(p.Data)))
		}
	}
	return n, nil
}

// begin prepares a program for each batch size of an epoch, what feeds and watches them, and the first batch.
func (n *network) begin(_ context.Context, splits data.Splits) (err error) {
	images, full := n.images.Len(), min(n.images.Len(), n.spec.Train.Batch)
	inputs := map[int][]graph.Input{}
	sizes := slices.DeleteFunc([]int{full, images % full}, func(size int) bool { return size == 0 })
	for _, size := range sizes {
		p, err := compile(n.model, n.options.Backend, graph.Options{Batch: size, Training: true})
		if err != nil {
			return err
		}
		p.follow(n.stepper.moved)
		n.programs[size], inputs[size] = p, p.Inputs
	}
	parts, err := decompose(n.images, inputs[full])
	if err != nil {
		return err
	}
	if err := n.rescale(parts); err != nil {
		return err
	}
	n.loader = newLoader(n.images, n.spec.Train.Seed, full, n.spec.Train.Epochs, n.options.Team.Threads(), inputs)
	n.loader.combine(parts)
	n.stepper.beside = n.loader.Fill
	if n.adversary, err = newAdversary(n.model, n.spec.Adversarial, n.options, sizes); err != nil {
		return err
	}
	if n.watcher, err = newWatcher(n.shown(), n.options.Backend, splits); err != nil {
		return err
	}
	n.loader.Start(n.progress.Epoch, n.progress.Position, n.progress.Step)
	n.options.Team.Do(n.loader.Fill)
	return nil
}

// close implements learner.
func (n *network) close() {
	_ = n.programs.Close() // what cannot be freed does not make the result wrong
	n.adversary.close()
	if n.watcher != nil {
		_ = n.watcher.programs.Close()
	}
}

// epoch implements learner: step after step, then a look at the model and whether to stop.
func (n *network) epoch(ctx context.Context) (m Metrics, err error) {
	for n.progress.Position < n.images.Len() {
		if ctx.Err() != nil {
			return m, errHalted
		}
		n.prune() // with the first step: a state between two epochs is that of the one which is over
		if err := n.step(); err != nil {
			return m, err
		}
		n.report()
	}
	return n.finish()
}

// finish ends an epoch: it looks at the model and decides whether to go on.
func (n *network) finish() (m Metrics, err error) {
	m = n.measured()
	n.shown()
	if m.Measured, err = n.watcher.Measure(); err != nil {
		return m, err
	}
	if bad := n.badEnd(m); bad.tensor != "" {
		return m, n.diverged(n.progress.Step, bad)
	}
	n.progress.Epoch++
	n.progress.Position = 0
	clear(n.progress.Sums)
	n.judge(m)
	return m, nil
}

// step is one step of training; the team prepares the next batch while it moves the parameters.
func (n *network) step() error {
	b := n.loader.Take()
	p := n.programs[b.size]
	if err := n.adversary.Attack(b); err != nil {
		return err
	}
	if err := p.Run(b.values); err != nil {
		return err
	}
	step := n.progress.Step + 1
	if loss := p.scalar(p.loss); math.IsNaN(loss) || math.IsInf(loss, 0) {
		first, err := n.firstBadForward(b)
		return errors.Join(n.diverged(step, first), err)
	}
	o, t := n.spec.Optimizer, n.spec.Train
	n.rate = optim.Rate(n.stepper.optimizer.LearningRate(), o.Schedule.Schedule, o.Schedule.WarmupEpochs, step, n.stepsPerEpoch(), t.Epochs) * n.relearning()
	sound := n.stepper.Step(p.Gradients(), n.rate, step)
	if err := n.stepper.Failed(); err != nil {
		return fmt.Errorf("%s: step %d: %w", n.folder.Path(), step, err)
	}
	if !sound {
		return n.diverged(step, p.firstBadBackward())
	}
	for i, term := range p.terms {
		n.progress.Sums[i] += p.scalar(term) * float64(b.size)
	}
	n.progress.Step = step
	n.progress.Position += b.size
	return nil
}

// measured returns the metrics of the current epoch's images so far.
func (n *network) measured() Metrics {
	m := Metrics{Epoch: n.progress.Epoch + 1, Step: n.progress.Step, LearningRate: n.rate, Terms: make([]Term, len(n.progress.Sums))}
	for i, sum := range n.progress.Sums {
		m.Terms[i] = Term{Name: n.spec.TermName(i), Value: sum / float64(n.progress.Position)}
		m.Loss += m.Terms[i].Value
	}
	m.Seconds = n.progress.Seconds + time.Since(n.epochFrom).Seconds()
	m.ImagesPerSecond = float64(n.progress.Position) / m.Seconds
	return m
}

// judge does what early stopping asks for: keep the best parameters, stop after too many epochs without better ones.
func (n *network) judge(m Metrics) {
	if n.best == nil {
		return
	}
	measure, ok := m.Measured.Number("val_mse")
	if !ok { // nothing validates
		measure = m.Loss
	}
	b := n.progress.Best
	if b == nil || measure < b.Error-n.spec.Train.MinDelta {
		n.progress.Best = &best{Epoch: n.progress.Epoch, Step: n.progress.Step, Error: measure}
		for i, p := range n.shown().Parameters {
			copy(n.best[i], p.Data)
		}
	} else if n.progress.Epoch-b.Epoch >= n.spec.Train.Patience {
		n.progress.Stopped = true
	}
}

// report tells the caller how the epoch goes on, when it is time.
func (n *network) report() {
	if n.options.Report == nil || time.Since(n.reported) < reportEvery || n.progress.Position >= n.images.Len() {
		return
	}
	n.tell(n.measured(), false)
}

// save implements learner: the parameters, the optimizer's state and the parameters of the best epoch.
func (n *network) save(state *checkpoint.File) error {
	for _, p := range n.model.Parameters {
		state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: p.Data})
	}
	for _, m := range n.stepper.moved {
		for i, values := range m.state {
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: optimizerName(m, i), Shape: m.Shape, Data: values})
		}
	}
	n.saveAverages(state)
	n.savePruned(state)
	if n.progress.Best != nil {
		for i, p := range n.model.Parameters {
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: bestPrefix + p.Path, Shape: p.Shape, Data: n.best[i]})
		}
	}
	return nil
}

// restore implements learner.
func (n *network) restore(from *stored) error {
	if got, want := len(from.Sums), len(n.spec.Losses); got != want {
		return checkpoint.Mismatchf(from.path, "does not match its model: it holds sums of %d loss terms, want %d", got, want)
	}
	if err := loadParameters(n.model, from.path, from.file, "", current(n.model)); err != nil {
		return err
	}
	for _, m := range n.stepper.moved {
		for i, values := range m.state {
			if err := load(from.path, from.file, optimizerName(m, i), m.Shape, values); err != nil {
				return err
			}
		}
	}
	if n.average != nil {
		if err := loadParameters(n.model, from.path, from.file, averagePrefix, n.average.values); err != nil {
			return err
		}
	}
	if err := n.restorePruned(from); err != nil {
		return err
	}
	if n.best == nil { // early stopping has been switched off since
		n.progress.Best = nil
	}
	if n.progress.Best == nil {
		return nil
	}
	return loadParameters(n.model, from.path, from.file, bestPrefix, n.best)
}

// derived implements learner: the parameters of the best epoch, where early stopping looks for it, and the present ones.
func (n *network) derived() (files []folder.File, err error) {
	if b := n.progress.Best; b != nil {
		best, err := n.encode(folder.Best, n.parametersFile("best parameters", b.Epoch, b.Step, n.best))
		if err != nil {
			return nil, err
		}
		files = append(files, best)
	}
	parameters, err := n.encode(folder.Model, n.parametersFile("parameters", n.progress.Epoch, n.progress.Step, current(n.shown())))
	return append(files, parameters), err
}

// parametersFile holds the model's parameters; data[i] are the values of Parameters[i].
func (n *network) parametersFile(contents string, epoch, step int, data [][]float32) *checkpoint.File {
	f := &checkpoint.File{Metadata: n.metadata(contents, epoch, step)}
	for i, p := range n.model.Parameters {
		f.Tensors = append(f.Tensors, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: data[i]})
	}
	return f
}
