package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tessera/graph"
	"tessera/internal/engine/kernel"
	"tessera/optim"
)

// Diverged is the error for a training with a NaN or infinite value, or for a training in which a multiplier has turned off
// every unit. It names the step and the first affected tensor, in the order of a step: input, parameters, code, output, loss
// terms, loss, gradients, updated parameters, val_mse.
type Diverged struct {
	Run    string
	Epoch  int     // epoch, from 1
	Step   int     // step, from 1
	Tensor string  // "code", "loss.kl", "gradient of encoder.0.weight", "encoder.0.weight", "val_mse"
	Value  float64 // the first non-finite value

	// Collapse explains why a training with finite values was ended: every unit is dead. It is "" for NaN and Inf.
	Collapse string

	advice string // remedy, "" if none is known
}

func (e *Diverged) Error() string {
	text := fmt.Sprintf("%s: training diverged at step %d (epoch %d): %s is %s; the last good checkpoint is kept",
		e.Run, e.Step, e.Epoch, e.Tensor, strconv.FormatFloat(e.Value, 'g', -1, 64))
	if e.Collapse != "" {
		text = fmt.Sprintf("%s: training collapsed by step %d (epoch %d): %s; the last good checkpoint is kept", e.Run, e.Step, e.Epoch, e.Collapse)
	}
	if e.advice == "" {
		return text
	}
	return text + "; " + e.advice + " may help"
}

// inputTensor is the name for the images in [Diverged].
const inputTensor = "input"

// bad is a tensor with a non-finite value.
type bad struct {
	tensor string
	value  float64
}

func (s *job) diverged(step int, b bad) error {
	d := &Diverged{Run: s.run, Epoch: s.progress.Epoch + 1, Step: step, Tensor: b.tensor, Value: b.value}
	if b.tensor == inputTensor { // no setting of the optimizer helps
		d.advice = "samples without NaN and infinite values, and augmentations that give none,"
		return d
	}
	switch s.spec.Optimizer.Optimizer.(type) {
	case optim.Rule:
		d.advice = "a smaller learning_rate or a clip_norm"
		if s.spec.Optimizer.ClipNorm > 0 {
			d.advice = "a smaller learning_rate or a smaller clip_norm"
		}
	case optim.Search: // which recovers from every point except the initial one
		d.advice = "other initial weights, or other weights of the loss terms,"
	}
	return d
}

// look sets b to a tensor if the tensor has a non-finite value and b is not set yet.
func (b *bad) look(tensor string, v []float32) {
	if b.tensor != "" {
		return
	}
	if x, is := firstBad(v); is {
		*b = bad{tensor, float64(x)}
	}
}

// firstBadForward finds the tensor that made the loss of a batch non-finite, by a program that also returns the output. The
// parameters were finite before the projection of the last step, but may not be finite after it.
func (n *network) firstBadForward(inputs *batch) (b bad, err error) {
	want := n.model.TrainingOutputs()
	if n.model.Encodes() {
		want = append(n.model.Layout.Values(), graph.Loss)
	}
	r := n.request(want...)
	r.Batch = inputs.size
	if turn, _ := n.spec.Turn(n.progress.Step + 1); turn >= 0 {
		r.Player = turn + 1
	}
	backend, err := n.backend()
	if err != nil {
		return b, err
	}
	p, err := compile(n.model, backend, r)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, p.runner.Close()) }()
	if err := p.Run(inputs.values); err != nil {
		return b, err
	}
	b.look(inputTensor, inputs.values[0])
	for _, q := range p.Parameters {
		b.look(q.Path, q.Data)
	}
	b.lookRun(p)
	return b, nil
}

// firstBadBackward finds the tensor that made the parameters non-finite although the loss is finite.
func (p *program) firstBadBackward() (b bad) {
	b.lookRun(p)
	for _, q := range p.Parameters {
		b.look(q.Path, q.Data)
	}
	if b.tensor == "" { // the projection made a parameter finite again
		b = bad{"the optimizer's step", math.NaN()}
	}
	return b
}

// firstBad finds the tensor that made the full-batch objective non-finite in its last evaluation.
func (w *fullBatch) firstBad() (b bad, err error) {
	for _, p := range w.model.Parameters {
		b.look(p.Path, p.Data)
	}
	if w.rest != nil && b.tensor == "" {
		b.look("code", w.codes)
		b.lookRun(w.rest)
	}
	err = w.batches(context.Background(), func(from, to int) error {
		if b.tensor != "" {
			return nil
		}
		p := w.portions[to-from]
		if err := w.feed.run(p, from, to); err != nil {
			return err
		}
		b.look(inputTensor, w.feed.inputs[0])
		b.lookRun(p)
		return nil
	})
	if b.tensor == "" {
		b = bad{"loss", math.NaN()}
	}
	return b, err
}

// lookRun checks the results of a program's last run.
func (b *bad) lookRun(p *program) {
	for i, tap := range p.Taps {
		if strings.HasPrefix(tap.Name, graph.UnweightedName("")) {
			continue // the weighted term says it
		}
		b.look(tap.Name, p.runner.Tap(i))
	}
	for i, q := range p.Parameters {
		if g := p.runner.Gradient(i); g != nil {
			b.look("gradient of "+q.Path, g)
		}
	}
}

// finite reports whether no value is NaN or infinite. A non-finite value makes the sum non-finite, and summing is fast. If a
// sum of large finite values overflows, each value is checked.
func finite(v []float32) bool {
	if sum := kernel.Float32().Sum(v); sum-sum == 0 {
		return true
	}
	_, ok := firstBad(v)
	return !ok
}

// firstBad returns the first non-finite value; ok is false if all are finite.
func firstBad(v []float32) (value float32, ok bool) {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return x, true
		}
	}
	return 0, false
}
