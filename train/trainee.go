package train

import (
	"errors"
	"fmt"

	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// trainee is an auto-encoder in training, by mini-batch steps or by a full-batch optimizer: its parameters, its hooks and
// the measurements between epochs.
type trainee struct {
	*job
	model    *graph.Model
	twin     *graph.Model // the model with the values that a hook shows; nil if no hook does
	stepper  *stepper
	around   around
	watcher  *watcher
	compiled []compiled // for hooks
	rate     float64    // of the last step
}

// newTrainee returns a model with projected initial parameters and a new optimizer. Its hooks are not attached yet.
func newTrainee(j *job) (*trainee, error) {
	m, err := graph.New(j.spec, j.shape)
	if err != nil {
		return nil, err
	}
	var among *processes
	if j.options.ShardOptimizer {
		among = j.processes
	}
	t := &trainee{job: j, model: m, stepper: newStepper(m, j.options.Team, among)}
	if err := guard("the first projection", func() error { t.stepper.Project(); return nil }); err != nil {
		return nil, fmt.Errorf("model %q: %w", j.spec.Name, err)
	}
	t.progress.Sums = make([]float64, len(j.spec.Losses))
	return t, nil
}

// attach makes the running forms of the model's hooks. After an error none of them is left open.
func (t *trainee) attach() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("model %q: %w", t.spec.Name, err), t.around.close())
		}
	}()
	for _, declared := range t.spec.AllHooks() {
		a, err := attach(declared.Name, declared.Hook, training{t, declared.Name})
		t.around = append(t.around, a)
		if err != nil {
			return err
		}
		if a.Substitute != nil {
			t.twin = t.model.Twin()
		}
	}
	if err := t.around.check(t.searches(), t.spec.Optimizer.Kind); err != nil {
		return err
	}
	if t.model.Lent, err = t.around.lent(); err != nil {
		return err
	}
	return t.stepper.surround(t.around)
}

// request describes a program; its images are prepared if a hook prepares them.
func (t *trainee) request(want ...string) graph.Request {
	return graph.Request{Want: want, Prepared: t.around.prepares()}
}

// ready initialises a run after its programs are compiled and its images prepared.
func (t *trainee) ready(splits data.Splits, fresh bool) error {
	if fresh {
		if err := t.initialise(); err != nil {
			return err
		}
		if err := t.around.each(func(a *attached) error { return a.Initialise() }); err != nil {
			return err
		}
	}
	if err := t.around.each(func(a *attached) error { return a.Begin() }); err != nil {
		return err
	}
	m, err := t.shown()
	if err != nil {
		return err
	}
	t.watcher, err = newWatcher(m, t.around, t.options.Backend, splits)
	return err
}

// shown returns the current model of the run: with the values that a hook shows, or with the trained ones.
func (t *trainee) shown() (*graph.Model, error) {
	if t.twin == nil {
		return t.model, nil
	}
	err := t.around.each(func(a *attached) error {
		if a.Substitute != nil {
			for i, p := range t.twin.Parameters {
				copy(p.Data, a.Substitute(t.stepper.views[i]))
			}
		}
		return nil
	})
	if err == nil {
		err = t.stepper.projectTwin(t.twin)
	}
	return t.twin, err
}

// finish ends an epoch: it measures the model and calls the hooks.
func (t *trainee) finish() (m Metrics, err error) {
	m = t.measured()
	if _, err := t.shown(); err != nil {
		return m, err
	}
	if m.Measured, err = t.watcher.Measure(); err == nil {
		err = t.processes.shareValues(m.Measured)
	}
	if err != nil {
		return m, err
	}
	if bad := t.badEnd(m); bad.tensor != "" {
		return m, t.diverged(t.progress.Step, bad)
	}
	t.progress.Epoch++
	t.progress.Position = 0
	clear(t.progress.Sums)
	e := &hooks.Epoch{Epoch: m.Epoch, Step: m.Step, Metrics: m.values()}
	return m, t.around.each(func(a *attached) error { return a.EndEpoch(e) })
}

// measured returns the metrics of the current epoch's images so far.
func (t *trainee) measured() Metrics {
	m := Metrics{Epoch: t.progress.Epoch + 1, Step: t.progress.Step, LearningRate: t.rate}
	for i, sum := range t.progress.Sums {
		value := sum / float64(t.progress.Position)
		m.Terms.Set(t.spec.TermName(i), value)
		m.Loss += value
	}
	m.Seconds = t.spent()
	m.ImagesPerSecond = float64(t.progress.Position) / m.Seconds
	return m
}

// badEnd checks the values at the end of an epoch that no step checks.
func (t *trainee) badEnd(m Metrics) (b bad) {
	for _, p := range t.model.Parameters {
		b.look(p.Path, p.Data)
	}
	if mse, ok := m.Measured.Number("val_mse"); ok {
		b.look("val_mse", []float32{float32(mse)})
	}
	return b
}

// save implements learner: the parameters and the states of the optimizer and the hooks.
func (t *trainee) save(state *checkpoint.File) error {
	add(state, t.model, current(t.model))
	if err := t.stepper.saveState(state); err != nil {
		return err
	}
	return t.around.save(state)
}

// restore implements learner.
func (t *trainee) restore(from *stored) error {
	if got, want := len(from.Sums), len(t.spec.Losses); got != want {
		return checkpoint.Mismatchf(from.path, "does not match its model: got sums of %d loss terms, want %d", got, want)
	}
	if got, want := len(from.Weights), len(t.spec.Losses); got != 0 && got != want {
		return checkpoint.Mismatchf(from.path, "does not match its model: got weights of %d loss terms, want %d", got, want)
	}
	if err := loadParameters(t.model, from.path, from.file); err != nil {
		return err
	}
	if err := t.stepper.restoreState(from); err != nil {
		return err
	}
	return t.around.restore(from)
}

// kept implements learner.
func (t *trainee) kept() (*hooks.BestEpoch, error) { return t.around.kept() }

// derived implements learner: the parameters of the epoch that a hook keeps, and the current ones.
func (t *trainee) derived() (files []derived, err error) {
	k, err := t.kept()
	if err != nil {
		return nil, err
	}
	if k != nil {
		best := &checkpoint.File{Metadata: t.metadata("best parameters", k.Epoch, k.Step)}
		add(best, t.model, k.Values)
		files = append(files, derived{folder.Best, best})
	}
	m, err := t.shown()
	if err != nil {
		return nil, err
	}
	last := &checkpoint.File{Metadata: t.metadata("parameters", t.progress.Epoch, t.progress.Step)}
	add(last, t.model, current(m))
	return append(files, derived{folder.Model, last}), nil
}

// close implements learner.
func (t *trainee) close() {
	_ = t.around.close() // an error of freeing memory does not affect the result
	for _, c := range t.compiled {
		_ = c.Close()
	}
	if t.watcher != nil {
		_ = t.watcher.programs.Close()
	}
}

// errHalted is returned by an epoch that stopped early because the context ended.
var errHalted = errors.New("halted")
