package train

import (
	"context"
	"errors"
	"math"

	"tessera/data"
	"tessera/optim"
	"tessera/train/checkpoint"
)

// search trains an auto-encoder with a full-batch optimizer: an epoch is one iteration. An interrupted iteration is
// repeated from its beginning, with the same bits.
type search struct {
	*trainee
	method  optim.Search
	weights []float32                       // all trainable parameters, one after the other
	state   [][]float32                     // the optimizer's vectors, split by parameter
	next    func(ctx context.Context) error // one iteration
	whole   *whole
}

func newSearch(j *job, method optim.Search) (*search, error) {
	t, err := newTrainee(j)
	if err != nil {
		return nil, err
	}
	r := &search{trainee: t, method: method}
	length := 0
	for _, m := range t.stepper.moved {
		length += len(m.Data)
	}
	r.weights = make([]float32, length)
	for range method.States() {
		all := make([]float32, length)
		r.state = append(r.state, all)
		for _, m := range t.stepper.moved {
			m.State, all = append(m.State, all[:len(m.Data):len(m.Data)]), all[len(m.Data):]
		}
	}
	t.rate = math.NaN()
	j.progress.Search = &optim.SearchState{}
	if err := t.attach(); err != nil {
		return nil, err
	}
	return r, nil
}

// begin implements learner.
func (r *search) begin(_ context.Context, splits data.Splits, fresh bool) (err error) {
	if r.whole, err = newWhole(r.trainee); err != nil {
		return err
	}
	if err := r.ready(splits, fresh); err != nil {
		return err
	}
	w := r.weights
	for _, m := range r.stepper.moved {
		w = w[copy(w, m.Data):]
	}
	r.next = r.searching()
	return nil
}

// searching starts the optimizer and returns a function for one iteration.
func (r *search) searching() func(ctx context.Context) error {
	var within context.Context // of the current iteration
	f := optim.Objective{Evaluate: func(w, g []float32) (float64, error) { return r.whole.Evaluate(within, w, g) }}
	if len(r.spec.Constraints) > 0 {
		f.Project = r.project
	}
	descent := r.method.Begin(f, r.weights, r.state, r.progress.Search)
	return func(ctx context.Context) error {
		within = ctx
		return descent.Next()
	}
}

// project applies the constraints to weights that are not in the model yet.
func (r *search) project(w []float32) {
	for _, m := range r.stepper.moved {
		m.constrain(w[:len(m.Data)])
		w = w[len(m.Data):]
	}
}

// epoch implements learner. It measures the terms of the objective at the end of the iteration.
func (r *search) epoch(ctx context.Context, _ func(func() Metrics)) (m Metrics, err error) {
	if !r.progress.Begun { // false: a new iteration; true: an interrupted one
		if err := r.around.each(func(a *attached) error { return a.BeginEpoch() }); err != nil {
			return m, err
		}
	}
	r.progress.Begun = true
	err = r.next(ctx)
	scatter(r.stepper.moved, r.weights) // the last evaluation may have been at another point
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
	r.progress.Begun = false
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
		return checkpoint.Errorf(from.path, "damaged: the number of function evaluations is missing")
	}
	return r.trainee.restore(from)
}

// close implements learner.
func (r *search) close() {
	r.trainee.close()
	if r.whole != nil {
		_ = r.whole.Close()
	}
}
