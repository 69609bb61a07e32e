package train

import (
	"errors"
	"slices"

	"tessera/graph"
	"tessera/hooks"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// trainee is an auto-encoder that is moved along gradients, in steps or by a search: its parameters, the hooks around it, and
// what is measured between epochs.
type trainee struct {
	*job
	model   *graph.Model
	twin    *graph.Model // the model with the values that a hook shows; nil where none does
	stepper *stepper
	around  around
	watcher *watcher
	rate    float64 // of the last step
	fresh   bool    // a new run, before its first step
}

// newTrainee returns a model with its first parameters, projected, and a fresh optimizer. Its hooks are not attached yet.
func newTrainee(j *job) (*trainee, error) {
	m, err := graph.New(j.spec, j.shape)
	if err != nil {
		return nil, err
	}
	t := &trainee{job: j, model: m, stepper: newStepper(m, j.options.Team)}
	t.stepper.Project()
	t.progress.Sums = make([]float64, len(j.spec.Losses))
	return t, nil
}

// shown returns the model of the run as it is now: with the values that a hook shows, else with the trained ones.
func (t *trainee) shown() *graph.Model {
	if t.twin == nil {
		return t.model
	}
	by := t.around.shows()
	for i, p := range t.twin.Parameters {
		copy(p.Data, by.Shown(t.stepper.views[i]))
	}
	t.stepper.projectOnto(t.twin)
	return t.twin
}

// ready gives a run what it begins with once its images are there; parts are their decompositions, nil where there are none.
func (t *trainee) ready(parts *decomposed) error {
	if err := t.rescale(parts); err != nil {
		return err
	}
	if t.fresh {
		if err := t.around.First(); err != nil {
			return err
		}
	}
	t.fresh = false
	return t.around.Begin()
}

// batchSizes lists the sizes of an epoch's batches.
func (t *trainee) batchSizes() []int {
	n := t.images.Len()
	full := min(n, t.spec.Train.Batch)
	return slices.DeleteFunc([]int{full, n % full}, func(size int) bool { return size == 0 })
}

// finish ends an epoch: it measures the model and asks the hooks.
func (t *trainee) finish() (m Metrics, err error) {
	m = t.measured()
	t.shown()
	if m.Measured, err = t.watcher.Measure(); err != nil {
		return m, err
	}
	if bad := t.badEnd(m); bad.tensor != "" {
		return m, t.diverged(t.progress.Step, bad)
	}
	t.progress.Epoch++
	t.progress.Position = 0
	clear(t.progress.Sums)
	return m, t.around.EndEpoch(&hooks.Epoch{Epoch: m.Epoch, Step: m.Step, Metrics: m.known()})
}

// measured returns the metrics of the current epoch's images so far.
func (t *trainee) measured() Metrics {
	m := Metrics{Epoch: t.progress.Epoch + 1, Step: t.progress.Step, LearningRate: t.rate, Terms: make([]Term, len(t.progress.Sums))}
	for i, sum := range t.progress.Sums {
		m.Terms[i] = Term{Name: t.spec.TermName(i), Value: sum / float64(t.progress.Position)}
		m.Loss += m.Terms[i].Value
	}
	m.Seconds = t.spent()
	m.ImagesPerSecond = float64(t.progress.Position) / m.Seconds
	return m
}

// save implements learner: the parameters, the optimizer's state and that of the hooks.
func (t *trainee) save(state *checkpoint.File) error {
	for _, p := range t.model.Parameters {
		state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: p.Data})
	}
	for _, m := range t.stepper.moved {
		for i, values := range m.state {
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: optimizerName(m, i), Shape: m.Shape, Data: values})
		}
	}
	return t.around.save(state)
}

// restore implements learner.
func (t *trainee) restore(from *stored) error {
	if got, want := len(from.Sums), len(t.spec.Losses); got != want {
		return checkpoint.Mismatchf(from.path, "does not match its model: it holds sums of %d loss terms, want %d", got, want)
	}
	if err := loadParameters(t.model, from.path, from.file, "", current(t.model)); err != nil {
		return err
	}
	for _, m := range t.stepper.moved {
		for i, values := range m.state {
			if err := load(from.path, from.file, optimizerName(m, i), m.Shape, values); err != nil {
				return err
			}
		}
	}
	return t.around.restore(from)
}

// kept implements learner.
func (t *trainee) kept() *hooks.Kept { return t.around.Kept() }

// derived implements learner: the parameters of the epoch that a hook keeps, and the present ones.
func (t *trainee) derived() ([]derived, error) {
	var files []derived
	if k := t.kept(); k != nil {
		files = append(files, derived{folder.Best, t.parametersFile("best parameters", k.Epoch, k.Step, k.Values)})
	}
	return append(files, derived{folder.Model, t.parametersFile("parameters", t.progress.Epoch, t.progress.Step, current(t.shown()))}), nil
}

// parametersFile holds the model's parameters; data[i] are the values of Parameters[i].
func (t *trainee) parametersFile(contents string, epoch, step int, data [][]float32) *checkpoint.File {
	f := &checkpoint.File{Metadata: t.metadata(contents, epoch, step)}
	for i, p := range t.model.Parameters {
		f.Tensors = append(f.Tensors, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: data[i]})
	}
	return f
}

// close implements learner.
func (t *trainee) close() {
	_ = t.around.Close() // what cannot be freed does not make the result wrong
	if t.watcher != nil {
		_ = t.watcher.programs.Close()
	}
}

// badEnd looks at what no single step looks at.
func (t *trainee) badEnd(m Metrics) (b bad) {
	for _, p := range t.model.Parameters {
		b.look(p.Path, p.Data)
	}
	if mse, ok := m.Measured.Number("val_mse"); ok {
		b.look("val_mse", []float32{float32(mse)})
	}
	return b
}

// errHalted says that an epoch was not done to its end because the context has ended.
var errHalted = errors.New("halted")
