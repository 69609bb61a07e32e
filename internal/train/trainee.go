package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/attack"
	"tessera/classical"
	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/regular"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/sae"
	"tessera/internal/train/torch"
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

// tensorFile is how the name of a file of parameters ends; others have vectors of words.
const tensorFile = ".safetensors"

// start initialises a new run with the parameters of another run, of a sparse dictionary or of a file, and projects them. A run of principal
// components provides the parameters of two dense layers. A resumed run reads its parameters from its own state, because the other run may have
// been deleted.
//
// If the other folder is not a run or has no parameters, the error is a [part.KeyError]. If parameters are missing or have
// another shape, it is a [*checkpoint.Error] that names each of them.
func (n *trainee) start() error {
	s := n.spec.Start
	if s == nil {
		return nil
	}
	place := cmp.Or(n.options.Start, s.From())
	var err error
	switch {
	case s.File != "" && !strings.HasSuffix(place, tensorFile):
		n.started, err = n.spell(place, s)
	case s.File != "":
		n.started, err = n.fill(place, s)
	case sae.Weights(place) != "":
		var d *sae.Dictionary
		if d, err = sae.Read(place); err == nil {
			from := &graph.Model{Spec: n.spec}
			d.Parameters(func(path string, t data.Tensor) {
				from.Parameters = append(from.Parameters, &graph.Parameter{Path: path, Shape: t.Shape, Data: t.Data})
			})
			n.started, err = &d.File, n.take(from, d.File.Path, s.On)
		}
	default:
		n.started, err = n.follow(place, s)
	}
	if err != nil {
		return fmt.Errorf("model %q: start: %w", n.spec.Name, err)
	}
	n.stepper.Project()
	return nil
}

// follow copies the parameters of a run.
func (n *trainee) follow(run string, s *config.Start) (*data.File, error) {
	refuse := func(problem string) (*data.File, error) {
		return nil, part.KeyError{Key: "run", Problem: s.Run + " is " + problem}
	}
	from, err := Open(run)
	switch {
	case errors.Is(err, folder.ErrNotRun):
		return refuse("not the folder of a run; train it first, or fetch it by `tessera get`")
	case err != nil:
		return nil, err
	case from.Model == nil:
		if from.Model = projected(from); from.Model == nil {
			return refuse(fmt.Sprintf("a run of kind %q, which has no network parameters", from.Spec.Kind))
		}
	}
	if err := n.take(from.Model, from.Path, s.On); err != nil {
		return nil, err
	}
	if was, is := data.ScaleIsFitted(from.Spec.Dataset.Source), data.ScaleIsFitted(n.spec.Dataset.Source); was != is && n.options.Warn != nil {
		with := map[bool]string{false: "not scaled by their statistics", true: "scaled by their statistics"}
		n.options.Warn(fmt.Sprintf("start: the samples of %s are %s, those of this model are %s: its parameters read values in another unit; declare the same scale", s.Run, with[was], with[is]))
	}
	return ParametersOf(run)
}

// fill copies the tensors of a file in the layouts of PyTorch's modules.
func (n *trainee) fill(path string, s *config.Start) (*data.File, error) {
	file, err := data.ReadTensors(path)
	if err != nil {
		return nil, err
	}
	if file.Metadata[declarationKey] != "" && file.Metadata["format"] != "pt" {
		return nil, part.KeyErrorf("file", "%s has parameters in the layouts of a run; name its folder: run = %q", path, filepath.Dir(path))
	}
	problems, err := torch.Fill(n.model, func(path string) bool { return config.MatchPath(s.On, path) }, torch.Renamed(s.Names), file.ByName)
	if err == nil && problems != nil {
		err = checkpoint.Mismatchf(path, "does not match: %s; it has %s; rename parameters with `names`, or exclude them with `on`", strings.Join(problems, "; "),
			strings.Join(slices.Sorted(maps.Keys(file.ByName)), ", "))
	}
	return &file.File, err
}

// projected returns an auto-encoder of two dense layers with the parameters of an affine baseline; nil for other baselines.
func projected(t *Trained) *graph.Model {
	affine, ok := t.Baseline.(classical.Affine)
	if !ok {
		return nil
	}
	weight, bias := affine.Affine()
	atoms := t.Baseline.Atoms()
	units, pixels := len(bias), len(weight)/len(bias)
	return &graph.Model{Spec: t.Spec, Parameters: []*graph.Parameter{
		{Path: "encoder.0.weight", Shape: []int{pixels, units}, Data: weight},
		{Path: "encoder.0.bias", Shape: []int{units}, Data: bias},
		{Path: "decoder.0.weight", Shape: []int{units, pixels}, Data: atoms.Values},
		{Path: "decoder.0.bias", Shape: []int{pixels}, Data: atoms.Bias},
	}}
}

// StartOf returns the file from which a new run of a model takes its initial parameters; nil if they are random.
func StartOf(spec *config.Model) (*data.File, error) {
	if spec == nil || spec.Start == nil {
		return nil, nil
	}
	return ParametersOf(spec.Start.From())
}

// ParametersOf returns the file from which [Open] would read the parameters of a run, or from which a model would start: the file itself, or that of
// a sparse dictionary in a folder.
func ParametersOf(place string) (*data.File, error) {
	path := sae.Weights(place)
	if info, err := os.Stat(place); err == nil && !info.IsDir() || strings.HasSuffix(place, tensorFile) {
		path = place
	}
	contents, err := []byte(nil), error(nil)
	if path != "" {
		contents, err = regular.ReadFile(path)
	} else {
		path, contents, err = folderOf(place).parameters()
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(contents)
	return &data.File{Path: path, SHA256: hex.EncodeToString(sum[:])}, nil
}

// take copies every parameter that matches the glob, or none if one of them is unsuitable.
func (n *trainee) take(from *graph.Model, path, glob string) error {
	var problems []string
	taken := map[*graph.Parameter]*graph.Parameter{}
	for _, p := range n.model.Parameters {
		if !config.MatchPath(glob, p.Path) {
			continue
		}
		if q, err := from.Parameter(p.Path); err != nil {
			problems = append(problems, p.Path+" is missing")
		} else if !slices.Equal(q.Shape, p.Shape) {
			problems = append(problems, fmt.Sprintf("%s has shape %v, want %v", p.Path, q.Shape, p.Shape))
		} else {
			taken[p] = q
		}
	}
	if len(problems) > 0 {
		return checkpoint.Mismatchf(path, "does not match: %s; exclude parameters with `on`", strings.Join(problems, "; "))
	}
	for p, q := range taken {
		copy(p.Data, q.Data)
	}
	return nil
}
