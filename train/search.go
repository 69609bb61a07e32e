package train

import (
	"context"
	"errors"
	"math"

	"tessera/data"
	"tessera/optim"
	"tessera/train/checkpoint"
)

// search learns an auto-encoder with an optimizer that looks at all images: an epoch is one iteration of it. An iteration
// that is interrupted is done again from its beginning, to the same bits.
type search struct {
	*network
	method  optim.Search
	weights []float32   // all trainable parameters, one after the other
	state   [][]float32 // the optimizer's, cut into the states of the parameters
	descent optim.Descent
	whole   *whole
	ctx     context.Context // of the present iteration
}

func newSearch(s *session, method optim.Search) (*search, error) {
	n, err := newNetwork(s)
	if err != nil {
		return nil, err
	}
	r := &search{network: n, method: method}
	length := 0
	for _, m := range n.stepper.moved {
		length += len(m.Data)
	}
	r.weights = make([]float32, length)
	for range method.States() {
		all := make([]float32, length)
		r.state = append(r.state, all)
		for _, m := range n.stepper.moved {
			m.state, all = append(m.state, all[:len(m.Data):len(m.Data)]), all[len(m.Data):]
		}
	}
	n.rate = math.NaN()
	s.progress.Search = &optim.Held{}
	return r, nil
}

// begin implements learner.
func (r *search) begin(_ context.Context, splits data.Splits) (err error) {
	if r.whole, err = newWhole(r.model, r.stepper.moved, r.images, r.options); err != nil {
		return err
	}
	if err := r.rescale(r.whole.parts); err != nil {
		return err
	}
	if r.watcher, err = newWatcher(r.shown(), r.options.Backend, splits); err != nil {
		return err
	}
	f := optim.Objective{Evaluate: func(w, g []float32) (float64, error) { return r.whole.Evaluate(r.ctx, w, g) }}
	if len(r.spec.Constraints) > 0 {
		f.Project = r.project
	}
	r.gather()
	r.descent = r.method.Begin(f, r.weights, r.state, r.progress.Search)
	return nil
}

// project applies the constraints to weights that are not the model's yet.
func (r *search) project(w []float32) {
	for _, m := range r.stepper.moved {
		m.projectValues(w[:len(m.Data)])
		w = w[len(m.Data):]
	}
}

// gather copies the model's parameters into the weights, and scatter does the opposite.
func (r *search) gather() {
	w := r.weights
	for _, m := range r.stepper.moved {
		w = w[copy(w, m.Data):]
	}
}

func (r *search) scatter() { scatter(r.stepper.moved, r.weights) }

// epoch implements learner. What is measured are the terms of the objective where the iteration ended.
func (r *search) epoch(ctx context.Context) (m Metrics, err error) {
	r.ctx = ctx
	err = r.descent.Next()
	r.scatter() // the last look may have been elsewhere
	switch {
	case errors.Is(err, optim.ErrMinimum):
		r.progress.Stopped = true
	case errors.Is(err, optim.ErrNotFinite):
		found, err := r.whole.firstBad()
		return m, errors.Join(r.diverged(r.progress.Step+1, found), err)
	case err != nil:
		return m, err
	}
	terms, err := r.whole.Terms(r.weights)
	if err != nil {
		return m, err
	}
	r.progress.Step++
	r.progress.Position = r.images.Len()
	for i, term := range terms {
		r.progress.Sums[i] = term * float64(r.images.Len())
	}
	return r.finish()
}

// restore implements learner.
func (r *search) restore(from *stored) error {
	if from.Search == nil || from.Search.Points < 0 || 2*from.Search.Points > r.method.States() {
		return checkpoint.Errorf(from.path, "damaged: it does not say how many points its search knows")
	}
	return r.network.restore(from)
}

// close implements learner.
func (r *search) close() {
	r.network.close()
	if r.whole != nil {
		_ = r.whole.Close()
	}
}
