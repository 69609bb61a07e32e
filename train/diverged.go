package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"tessera/graph"
	"tessera/kernel"
	"tessera/optim"
)

// Diverged says that training met NaN or Inf: at which step, and in which tensor first, in the order in which a step
// uses them: the input, parameters, the code, the output, loss terms, the loss, gradients, moved parameters, and val_mse.
type Diverged struct {
	Run    string
	Epoch  int     // from 1
	Step   int     // from 1
	Tensor string  // "code", "loss.kl", "gradient of encoder.0.weight", "encoder.0.weight", "val_mse"
	Value  float64 // NaN or an infinity

	advice string // what may help, "" where nothing is known
}

// Error implements error.
func (e *Diverged) Error() string {
	text := fmt.Sprintf("%s: training diverged at step %d (epoch %d): %s is %s; the last good checkpoint is kept",
		e.Run, e.Step, e.Epoch, e.Tensor, strconv.FormatFloat(e.Value, 'g', -1, 64))
	if e.advice == "" {
		return text
	}
	return text + "; " + e.advice + " may help"
}

// bad is a tensor with a value that is not finite.
type bad struct {
	tensor string
	value  float64
}

// diverged returns the error for what went bad.
func (s *job) diverged(step int, b bad) error {
	d := &Diverged{Run: s.run, Epoch: s.progress.Epoch + 1, Step: step, Tensor: b.tensor, Value: b.value}
	switch s.spec.Optimizer.Optimizer.(type) {
	case optim.Rule:
		d.advice = "a smaller learning_rate or a clip_norm"
	case optim.Search: // which comes back from anywhere but where it begins
		d.advice = "other first weights, or other weights of the loss,"
	}
	return d
}

// look sets b to a tensor unless it is finite or b is set already.
func (b *bad) look(tensor string, v []float32) {
	if b.tensor != "" {
		return
	}
	if x, is := firstBad(v); is {
		*b = bad{tensor, float64(x)}
	}
}

// firstBadForward names what made the loss of a batch bad, by a program that shows the output too. The parameters were
// finite after the last step, yet a projection may have changed that.
func (n *network) firstBadForward(inputs *batch) (b bad, err error) {
	want := n.model.Trained()
	if n.model.Encodes() {
		want = append(n.model.Layout.Values(), graph.Loss)
	}
	r := n.request(want...)
	r.Batch = inputs.size
	p, err := compile(n.model, n.options.Backend, r)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, p.runner.Close()) }()
	if err := p.Run(inputs.values); err != nil {
		return b, err
	}
	b.look("input", inputs.values[0])
	for _, q := range p.Parameters {
		b.look(q.Path, q.Data)
	}
	b.lookRun(p)
	return b, nil
}

// firstBadBackward names what made the parameters bad while the loss was good.
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

// firstBad names what made the objective bad, as the last look left everything.
func (w *whole) firstBad() (b bad, err error) {
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
		b.look("input", w.feed.inputs[0])
		b.lookRun(p)
		return nil
	})
	if b.tensor == "" {
		b = bad{"loss", math.NaN()}
	}
	return b, err
}

// lookRun looks at what a program's last run gave.
func (b *bad) lookRun(p *program) {
	for i, tap := range p.Taps {
		b.look(tap.Name, p.runner.Tap(i))
	}
	for i, q := range p.Parameters {
		if g := p.runner.Gradient(i); g != nil {
			b.look("gradient of "+q.Path, g)
		}
	}
}

// finite reports whether no value is NaN or infinite. One such value makes the sum NaN or infinite, and a sum is all
// that this costs; should a sum of large finite values overflow, each is looked at.
func finite(v []float32) bool {
	if sum := kernel.Float32().Sum(v); sum-sum == 0 {
		return true
	}
	_, ok := firstBad(v)
	return !ok
}

// firstBad returns the first value that is not finite; ok is false where all are.
func firstBad(v []float32) (value float32, ok bool) {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return x, true
		}
	}
	return 0, false
}
