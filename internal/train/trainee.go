package train

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"

	"tessera/attack"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// trainee is an auto-encoder in training, with a mini-batch or full-batch optimizer: its parameters, its hooks and the
// measurements between epochs.
type trainee struct {
	*job
	model   *graph.Model
	twin    *graph.Model // the model with the values that a hook substitutes for the parameters; nil if no hook does
	stepper *stepper
	hooks   hookList
	watcher *watcher
	coder   *graph.Coder // computes for hooks; nil before the first time
	rate    float64      // learning rate of the last step
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
	if j.spec.TakesTurns() {
		t.progress.Counted = make([]int, len(j.spec.Losses))
	}
	return t, nil
}

// attach attaches the model's hooks. After an error it closes those that are already attached.
func (t *trainee) attach() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("model %q: %w", t.spec.Name, err), t.hooks.close())
		}
	}()
	for _, declared := range t.spec.AllHooks() {
		a, err := attach(declared.Name, declared.Hook, training{t, declared.Name})
		t.hooks = append(t.hooks, a)
		if err != nil {
			return err
		}
		if a.Substitute != nil {
			t.twin = t.model.Twin()
		}
	}
	if err := t.hooks.check(t.training.Iterates, t.spec.Optimizer.Kind); err != nil {
		return err
	}
	if t.model.Lent, err = t.hooks.lent(); err != nil {
		return err
	}
	if t.twin != nil {
		t.twin.Lent = t.model.Lent
	}
	return t.stepper.surround(t.hooks)
}

// request returns the request for a program. Its images are prepared if a hook prepares images.
func (t *trainee) request(want ...string) graph.Request {
	return graph.Request{Want: want, Prepared: t.hooks.prepares()}
}

// ready completes the initialisation of a run, after its programs are compiled and its images prepared.
func (t *trainee) ready(splits data.Splits, fresh bool) error {
	if fresh {
		if err := t.initialise(); err != nil {
			return err
		}
		if err := t.hooks.each(func(a *attached) error { return a.Initialise() }); err != nil {
			return err
		}
	}
	if err := t.hooks.each(func(a *attached) error { return a.Begin() }); err != nil {
		return err
	}
	m, err := t.shown()
	if err != nil {
		return err
	}
	t.watcher, err = newWatcher(m, t.hooks, t.options.Backend, splits)
	return err
}

// shown returns the current model of the run, with the values that a hook substitutes, or else with the trained parameters.
func (t *trainee) shown() (*graph.Model, error) {
	if t.twin == nil {
		return t.model, nil
	}
	err := t.hooks.each(func(a *attached) error {
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
	if !t.watcher.active {
		m.silent = t.watcher.units
	}
	if bad := t.badEnd(m); bad.tensor != "" {
		return m, t.diverged(t.progress.Step, bad)
	}
	if err := t.collapsed(m); err != nil {
		return m, err
	}
	t.progress.Epoch++
	t.progress.Position = 0
	clear(t.progress.Sums)
	clear(t.progress.Counted)
	t.progress.Weighed = nil
	e := &hooks.Epoch{Epoch: m.Epoch, Step: m.Step, Metrics: m.values()}
	err = t.hooks.each(func(a *attached) error { return a.EndEpoch(e) })
	if err == nil && t.finished() {
		t.unreachable = cmp.Or(t.badBelowZero(m), t.badTargets(m))
	}
	return m, err
}

// measured returns the metrics over the images of the current epoch so far.
func (t *trainee) measured() Metrics {
	m := Metrics{Epoch: t.progress.Epoch + 1, Step: t.progress.Step, LearningRate: t.rate}
	means := make([]float64, len(t.progress.Sums))
	for i, weighed := range t.progress.Weighed {
		m.unweighted = append(m.unweighted, t.progress.Sums[i]/weighed)
	}
	for i, sum := range t.progress.Sums {
		images := t.progress.Position
		if t.progress.Counted != nil {
			images = t.progress.Counted[i]
		}
		if images == 0 { // its player had no turn yet
			m.Terms = append(m.Terms, metrics.Value{Name: t.spec.TermName(i), Missing: "its player had no turn"})
			continue
		}
		means[i] = sum / float64(images)
		m.Terms.Set(t.spec.TermName(i), means[i])
		m.Loss += means[i]
	}
	m.Players = t.pace(means)
	m.Seconds = t.spent()
	m.ImagesPerSecond = float64(t.progress.Position) / m.Seconds
	return m
}

// pace returns the loss and the learning rate of each player, nil for a model without players.
func (t *trainee) pace(means []float64) (v metrics.Values) {
	for _, p := range t.stepper.players {
		if p.Name == "" {
			return nil
		}
		loss := 0.0
		for _, i := range p.Terms {
			loss += means[i]
		}
		v.Set(PlayerKey+p.Name+".loss", loss)
		v.Set(PlayerKey+p.Name+".learning_rate", p.rate)
	}
	return v
}

// badEnd checks the values at the end of an epoch that steps do not check.
func (t *trainee) badEnd(m Metrics) (b bad) {
	for _, p := range t.model.Parameters {
		b.look(p.Path, p.Data)
	}
	for _, key := range []string{"val_mse", ObjectiveKey} {
		if value, ok := m.Measured.Number(key); ok {
			b.look(key, []float32{float32(value)})
		}
	}
	return b
}

// save implements learner: the parameters and the states of the optimizer and the hooks.
func (t *trainee) save(state *checkpoint.File) error {
	add(state, t.model, current(t.model))
	if err := t.stepper.saveState(state); err != nil {
		return err
	}
	return t.hooks.save(state)
}

func (t *trainee) restore(from *stored) error {
	terms := len(t.spec.Losses)
	for _, c := range []struct {
		what     string
		got      int
		want     int
		optional bool
	}{
		{"sums", len(from.Sums), terms, false}, {"counts", len(from.Counted), len(t.progress.Counted), false},
		{"weights", len(from.Weights), terms, true}, {"sums of the weights", len(from.Weighed), terms, true},
	} {
		if c.got != c.want && (c.got != 0 || !c.optional) {
			return checkpoint.Mismatchf(from.path, "does not match its model: got %s of %d loss terms, want %d", c.what, c.got, c.want)
		}
	}
	if err := loadParameters(t.model, from.path, from.file); err != nil {
		return err
	}
	if err := t.stepper.restoreState(from); err != nil {
		return err
	}
	return t.hooks.restore(from)
}

func (t *trainee) kept() (*hooks.BestEpoch, error) { return t.hooks.kept() }

// derived implements learner: the parameters of the best epoch if a hook selects one, and the current ones.
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

func (t *trainee) close() {
	_ = t.hooks.close() // an error of freeing memory does not affect the result
	if t.coder != nil {
		_ = t.coder.Close()
	}
	if t.watcher != nil {
		_ = t.watcher.Close()
	}
}

// errHalted is returned by an epoch that stopped before its end because the context ended.
var errHalted = errors.New("halted")

type training struct {
	*trainee
	name string // name of the hook
}

func (t training) Parameters(glob string) []*hooks.Parameter {
	return lists.Only(t.stepper.views, func(p *hooks.Parameter) bool { return config.MatchPath(glob, p.Path) })
}

func (t training) Evaluated(p *hooks.Parameter) []float32 {
	m, err := t.shown()
	if err != nil {
		panic(err) // an error of this hook
	}
	return m.Parameters[p.Index].Data
}

func (t training) Rewrite(p *hooks.Parameter, change func(values []float32)) {
	if t.training.Iterates {
		panic(fmt.Sprintf("it changes %s, but %s cannot continue from changed parameters", p.Path, t.spec.Optimizer.Kind))
	}
	change(p.Data)
	for _, a := range t.hooks {
		if values := a.Average(p); values != nil {
			change(values)
		}
	}
}

func (t training) Project(p *hooks.Parameter) { t.stepper.projectOne(p) }

func (t training) Preparation() any {
	if len(t.spec.Encoder) > 0 {
		if first, ok := t.spec.Encoder[0].Layer.(layers.Preparing); ok {
			return first.Preparation()
		}
	}
	return nil
}

func (t training) Images() *data.Images { return t.images }

func (t training) Random(counter int) *rand.Rand {
	return random.Stream(t.spec.Train.Seed, "hook/"+t.name, uint64(counter))
}

func (t training) Epoch() int            { return t.progress.Epoch }
func (t training) Step() int             { return t.progress.Step }
func (t training) Stop()                 { t.progress.Stopped = true }
func (t training) Threads() int          { return t.options.Team.Threads() }
func (t training) Do(f func(thread int)) { t.options.Team.Do(f) }
func (t training) BatchSizes() []int     { return batchSizes(t.images.Len(), t.spec.Train.Batch) }

func (t training) Compile(want hooks.Value, images ...int) (hooks.Program, error) {
	name := map[hooks.Value]string{hooks.Code: losses.Code, hooks.Output: losses.Output, hooks.ImageGradient: graph.InputGradient}[want]
	p := valueProgram{t.trainee, name}
	return p, p.ready(images...)
}

func (t training) CompileHead(head string, objective attack.Objective, images ...int) (hooks.HeadProgram, error) {
	p := headProgram{valueProgram{t.trainee, graph.Adversary(objective, head)}, t.model.Layout.Size(head)}
	return p, p.ready(images...)
}

// headProgram computes a head's gradient and logits for attacks; it implements [hooks.HeadProgram].
type headProgram struct {
	valueProgram
	classes int
}

func (h headProgram) Run(images, targets []float32) (gradient, logits []float32, err error) {
	n := len(images) / h.model.Pixels()
	if err := h.ready(n); err != nil {
		return nil, nil, err
	}
	if targets == nil {
		targets = make([]float32, n*h.classes)
	}
	return h.coder.Once(h.want, images, targets)
}

// valueProgram computes one value for any number of images; it implements [hooks.Program].
type valueProgram struct {
	*trainee
	want string
}

// ready compiles the programs for these numbers of images. It returns an error if a program reads a column, which a hook does not have.
func (v valueProgram) ready(images ...int) error {
	if v.coder == nil {
		v.coder = graph.NewCoder(v.model, v.options.Backend)
	}
	for _, n := range images {
		columns, err := v.coder.Compile(v.want, n)
		if err != nil {
			return err
		}
		if len(columns) > 0 {
			return fmt.Errorf("%s is also computed from %s, but the hook has samples alone: remove the hook, or what reads this (a layer, a mask, weights of the samples, missing or hidden entries)",
				v.want, table.Quoted(columns))
		}
	}
	return nil
}

func (v valueProgram) Run(images, clean []float32) (values []float32, err error) {
	if err := v.ready(len(images) / v.model.Pixels()); err != nil {
		return nil, err
	}
	if v.want == graph.InputGradient {
		values, _, err = v.coder.Once(v.want, images, clean)
	} else {
		values, _, err = v.coder.Once(v.want, images)
	}
	return values, err
}

// initialise gives all processes the same initial parameters: those of rank 0, the only process that reads the run to start
// from.
func (n *trainee) initialise() error {
	if n.processes.leads() {
		if err := n.start(); err != nil {
			return err
		}
	}
	return n.processes.shareWeights(n.stepper.views)
}
