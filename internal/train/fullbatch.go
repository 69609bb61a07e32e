package train

import (
	"context"
	"errors"
	"math"
	"slices"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/train/checkpoint"
	"tessera/losses"
	"tessera/optim"
)

// search trains an auto-encoder with a full-batch optimizer: an epoch is one iteration. An interrupted iteration is
// repeated from its beginning, with the same bits.
type search struct {
	*trainee
	method    optim.Search
	weights   []float32                       // all trainable parameters, one after the other
	state     [][]float32                     // the optimizer's vectors, split by parameter
	next      func(ctx context.Context) error // performs one iteration
	fullBatch *fullBatch
}

func newSearch(j *job, method optim.Search) (*search, error) {
	t, err := newTrainee(j)
	if err != nil {
		return nil, err
	}
	r := &search{trainee: t, method: method}
	length := 0
	for _, m := range t.stepper.trainable {
		length += len(m.Data)
	}
	r.weights = make([]float32, length)
	for range method.States() {
		all := make([]float32, length)
		r.state = append(r.state, all)
		for _, m := range t.stepper.trainable {
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

func (r *search) begin(_ context.Context, splits data.Splits, fresh bool) (err error) {
	if r.fullBatch, err = newFullBatch(r.trainee); err != nil {
		return err
	}
	if err := r.ready(splits, fresh); err != nil {
		return err
	}
	w := r.weights
	for _, m := range r.stepper.trainable {
		w = w[copy(w, m.Data):]
	}
	r.next = r.searching()
	return nil
}

// searching starts the optimizer and returns a function for one iteration.
func (r *search) searching() func(ctx context.Context) error {
	var within context.Context // context of the current iteration
	f := optim.Objective{Evaluate: func(w, g []float32) (float64, error) { return r.fullBatch.Evaluate(within, w, g) }}
	if len(r.spec.Constraints) > 0 {
		f.Project = r.project
	}
	descent := r.method.Begin(f, r.weights, r.state, r.progress.Search)
	return func(ctx context.Context) error {
		within = ctx
		return descent.Next()
	}
}

// project applies the constraints to weights outside the model.
func (r *search) project(w []float32) {
	for _, m := range r.stepper.trainable {
		m.constrain(w[:len(m.Data)])
		w = w[len(m.Data):]
	}
}

// epoch implements learner. It measures the terms of the objective at the end of the iteration.
func (r *search) epoch(ctx context.Context, _ func(func() Metrics)) (m Metrics, err error) {
	if !r.progress.Begun { // false: a new iteration; true: an interrupted one
		if err := r.hooks.each(func(a *attached) error { return a.BeginEpoch() }); err != nil {
			return m, err
		}
	}
	r.progress.Begun = true
	err = r.next(ctx)
	scatter(r.stepper.trainable, r.weights) // the last evaluation may have been at another point
	switch {
	case errors.Is(err, optim.ErrMinimum):
		r.progress.Stopped = true
	case errors.Is(err, optim.ErrNotFinite):
		found, err := r.fullBatch.firstBad()
		return m, errors.Join(r.diverged(r.progress.Step+1, found), err)
	case err != nil:
		return m, err
	}
	terms, err := r.fullBatch.Terms(r.weights)
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

func (r *search) restore(from *stored) error {
	if from.Search == nil || from.Search.Points < 0 || 2*from.Search.Points > r.method.States() {
		return checkpoint.Errorf(from.path, "damaged: the number of function evaluations is missing")
	}
	return r.trainee.restore(from)
}

func (r *search) close() {
	r.trainee.close()
	if r.fullBatch != nil {
		_ = r.fullBatch.Close()
	}
}

// fullBatch is the full-batch objective, computed in micro-batches of train.batch images: first all codes, then the terms that
// read only codes and weights, then the terms that read images; see package graph. Only the codes of all images and their
// derivatives are stored for the full batch. Values and gradients are summed in float64, in a fixed order.
type fullBatch struct {
	model     *graph.Model
	trainable []*trainable
	images    *data.Images
	team      *team.Team
	feed      *feed
	encoders  compiled  // programs for the codes, by micro-batch size; nil if no term reads the code
	portions  compiled  // programs for the terms that read images, by micro-batch size
	rest      *program  // program for the terms that do not read images; nil if there are none
	codes     []float32 // codes of all images: the input of this program
	sums      []float64 // sums of the gradients, concatenated in the order of the parameters
	terms     []float64 // terms at the last evaluation
	last      []float32 // weights of the last evaluation
}

// newFullBatch compiles the programs.
func newFullBatch(t *trainee) (w *fullBatch, err error) {
	n, batch := t.images.Len(), t.spec.Train.Batch
	w = &fullBatch{model: t.model, trainable: t.stepper.trainable, images: t.images, team: t.options.Team, terms: make([]float64, len(t.spec.Losses))}
	defer func() {
		if err != nil {
			err, w = errors.Join(err, w.Close()), nil // nil: the caller must not close it again
		}
	}()
	length := 0
	for _, p := range w.trainable {
		length += len(p.Data)
	}
	w.sums, w.last = make([]float64, length), make([]float32, length)
	if err := w.compileRest(n, t.options.Backend); err != nil {
		return w, err
	}
	r := t.request(losses.Code, graph.Loss)
	r.Of = n
	if w.portions, err = compileAll(w.model, t.options.Backend, r, n, batch); err != nil {
		return w, err
	}
	for _, p := range w.portions {
		p.follow(w.trainable)
	}
	if w.codes != nil {
		if w.encoders, err = compileAll(w.model, t.options.Backend, t.request(losses.Code), n, batch); err != nil {
			return w, err
		}
	}
	w.feed, err = newFeed(w.images, t.hooks, t.spec.Train.Seed, w.portions, w.encoders)
	return w, err
}

// compileRest compiles the terms that do not read images.
func (w *fullBatch) compileRest(images int, backend ir.Backend) (err error) {
	some, code := w.model.Penalised()
	if !some {
		return nil
	}
	if w.rest, err = compile(w.model, backend, graph.Request{Batch: images, Given: []string{losses.Code}, Want: []string{graph.Loss}}); err != nil {
		return err
	}
	w.rest.follow(w.trainable)
	if code { // the codes are the program's first parameter
		w.codes = w.rest.runner.Parameter(0)
	}
	return nil
}

// Evaluate sets the model's parameters to weights and g to the gradient of the objective there, and returns the objective. It
// returns errHalted when ctx ends.
func (w *fullBatch) Evaluate(ctx context.Context, weights, g []float32) (float64, error) {
	scatter(w.trainable, weights)
	copy(w.last, weights)
	clear(w.terms)
	clear(w.sums)
	if err := w.encode(ctx); err != nil {
		return 0, err
	}
	if err := w.penalties(); err != nil {
		return 0, err
	}
	err := w.batches(ctx, func(from, to int) error {
		p := w.portions[to-from]
		if err := w.feed.run(p, from, to); err != nil {
			return err
		}
		w.add(p)
		return nil
	})
	for i, sum := range w.sums {
		g[i] = float32(sum)
	}
	return lists.Sum(w.terms), err
}

// encode computes the codes of all images if a term reads them.
func (w *fullBatch) encode(ctx context.Context) error {
	if w.codes == nil {
		return nil
	}
	units := w.model.Units()
	return w.batches(ctx, func(from, to int) error {
		p := w.encoders[to-from]
		if err := w.feed.run(p, from, to); err != nil {
			return err
		}
		copy(w.codes[from*units:to*units], p.value(losses.Code))
		return nil
	})
}

// penalties adds the terms that do not read images, and computes the upstream gradient with respect to the codes.
func (w *fullBatch) penalties() error {
	if w.rest == nil {
		return nil
	}
	if err := w.rest.Run(nil); err != nil {
		return err
	}
	w.add(w.rest)
	if w.codes != nil {
		w.feed.upstream = w.rest.runner.Gradient(0)
	}
	return nil
}

// batches calls f for all images in order, batch by batch.
func (w *fullBatch) batches(ctx context.Context, f func(from, to int) error) error {
	size := w.model.Spec.Train.Batch
	for from := 0; from < w.images.Len(); from += size {
		if ctx.Err() != nil {
			return errHalted
		}
		if err := f(from, min(from+size, w.images.Len())); err != nil {
			return err
		}
	}
	return nil
}

// add adds the terms and gradients from a program's last run.
func (w *fullBatch) add(p *program) {
	p.addTerms(w.terms, 1)
	gradients, threads := p.Gradients(), w.team.Threads()
	w.team.Do(func(thread int) {
		sums := w.sums
		for i, m := range w.trainable {
			n := len(m.Data)
			if g := gradients[i]; g != nil {
				from, to := team.EvenShare(n, thread, threads)
				for k, v := range g[from:to] {
					sums[from+k] += float64(v)
				}
			}
			sums = sums[n:]
		}
	})
}

// Terms returns the terms of the objective at weights. It evaluates the objective unless the last evaluation had the same
// weights.
func (w *fullBatch) Terms(weights []float32) ([]float64, error) {
	if slices.Equal(w.last, weights) {
		return w.terms, nil
	}
	_, err := w.Evaluate(context.Background(), weights, make([]float32, len(weights)))
	return w.terms, err
}

// scatter copies weights, the concatenated values of the parameters, into the parameters.
func scatter(parameters []*trainable, weights []float32) {
	for _, m := range parameters {
		weights = weights[copy(m.Data, weights):]
	}
}

func (w *fullBatch) Close() error {
	err := errors.Join(w.portions.Close(), w.encoders.Close())
	if w.rest != nil {
		err = errors.Join(err, w.rest.runner.Close())
	}
	return err
}
