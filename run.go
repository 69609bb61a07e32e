package tessera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/engine/ir"
	"tessera/graph"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
	"tessera/parallel/team"
	"tessera/train"
	"tessera/train/evaluation"
)

// Run is a trained model in memory. It is a [metrics.Coder]: it encodes, decodes and shows its atoms. Several goroutines may
// use it; they take turns. An [Encoder] lets them encode at the same time.
type Run struct {
	Model  *config.Model // as it was trained, with every default in place
	Path   string        // the run's folder, or the name of what it was read from
	Epoch  int           // epoch of the parameters, the best one under early stopping; iterations of a baseline
	Step   int           // optimizer steps of the parameters
	Result *train.Result // how the training ended; nil for a run that was opened

	mu      turns         // held by what computes
	coder   metrics.Coder // nil in the zero Run
	network *graph.Model  // nil for a baseline
	scaling *data.Scaling // between the samples of the run's methods and those of coder; nil for none
	span    [2]float32    // of the fitted samples
	classes []string      // names of the classes; nil where they are not known
	options Options
	dirs    data.Dirs
	origin  train.Environment // where its data are
	team    *team.Team
	closed  bool
}

// newRun returns the run of a model that was read; it owns the team.
func (o Options) newRun(t *train.Trained, path string, backend ir.Backend, team *team.Team) *Run {
	return &Run{Model: t.Spec, Path: path, Epoch: t.Epoch, Step: t.Step,
		coder: t.Coder(backend), network: t.Model, scaling: t.Scaling, span: t.Range, classes: t.Classes, options: o, dirs: data.SearchDirs(o.Data), team: team}
}

// ErrClosed is the error of a run or an encoder that was closed.
var ErrClosed = errors.New("closed")

// errNoModel is the error of a run that was not made by this package.
var errNoModel = errors.New("tessera: the run holds no model: take one that Train, Resume or Open returned")

// ready returns an error where there is nothing to compute with.
func (r *Run) ready() error {
	if r == nil {
		return errNoModel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.usable()
}

// usable is ready for those that hold the lock.
func (r *Run) usable() error {
	switch {
	case r.closed:
		return fmt.Errorf("run %s: %w", r.Path, ErrClosed)
	case r.coder == nil || r.Model == nil:
		return errNoModel
	}
	return nil
}

// computing calls f with the run's coder while no other goroutine computes.
func (r *Run) computing(f func(metrics.Coder) error) error {
	if r == nil {
		return errNoModel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	return f(r.coder)
}

// Shape implements [metrics.Coder]. The zero Run has none.
func (r *Run) Shape() []int {
	if r == nil || r.coder == nil {
		return nil
	}
	return r.coder.Shape()
}

// Units implements [metrics.Coder]. It is 0 of the zero Run.
func (r *Run) Units() int {
	if r == nil || r.coder == nil {
		return 0
	}
	return r.coder.Units()
}

// Encode implements [metrics.Coder]. The images are scaled as the run's training images were (`scale` of the data set). After Close
// it returns [ErrClosed].
func (r *Run) Encode(images []float32) (codes []float32, err error) {
	err = r.computing(func(c metrics.Coder) error { codes, err = c.Encode(r.scaling.Applied(images)); return err })
	return codes, err
}

// Decode implements [metrics.Coder]. It undoes the scaling of Encode. After Close it returns [ErrClosed].
func (r *Run) Decode(codes []float32) (images []float32, err error) {
	err = r.computing(func(c metrics.Coder) error { images, err = c.Decode(codes); return err })
	if err == nil {
		r.scaling.Undo(images)
	}
	return images, err
}

// ValueNames returns the names of the values of a sample, in their order, as the file of the data set has them, such as the columns
// of a data set csv; nil if the values have no names. A file that is missing, or is not the one of the training by its SHA-256, is a
// [*data.Error].
func (r *Run) ValueNames(ctx context.Context) ([]string, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	named, ok := r.origin.Placed(r.Model.Dataset.Source).(data.Namer)
	if !ok {
		return nil, nil
	}
	names, file, err := named.ValueNames(ctx)
	if err != nil {
		return nil, err
	}
	if !r.origin.Knows(file) {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Path: file.Path,
			Problem: fmt.Sprintf("is not the file of the training (its SHA-256, %.12s..., is not in the run's env.json)", file.SHA256),
			Hint:    "restore that file to get the names of its columns"}
	}
	return names, nil
}

// Range returns the smallest and the largest value of the fitted samples before they were scaled: 0 and 1 for bytes. The zero Run
// has none.
func (r *Run) Range() (low, high float32) {
	if r == nil {
		return 0, 0
	}
	return r.span[0], r.span[1]
}

// Atoms implements [metrics.Coder]. The zero Run has none.
func (r *Run) Atoms() *metrics.Atoms {
	if r == nil || r.coder == nil {
		return nil
	}
	return r.coder.Atoms()
}

// WithAtoms implements [metrics.Coder]. The coder computes with the run's goroutines: after Close of the run, its Encode and
// Decode return [ErrClosed] too.
func (r *Run) WithAtoms(a *metrics.Atoms) (other metrics.Coder, err error) {
	err = r.computing(func(c metrics.Coder) error {
		made, err := c.WithAtoms(a)
		other = &reAtomed{made, r}
		return err
	})
	if err != nil {
		return nil, err
	}
	return other, nil
}

// LastWeight implements [metrics.Weighted].
func (r *Run) LastWeight() []float32 {
	if r == nil || r.coder == nil {
		return nil
	}
	return metrics.LastWeight(r.coder)
}

// Value implements [metrics.ValueCoder]: a value of images by its name, one of [Run.Values] or [Run.Named], row by row. A baseline has
// none.
func (r *Run) Value(name string, images []float32) (values []float32, err error) {
	err = r.computing(func(c metrics.Coder) error {
		named, ok := c.(metrics.ValueCoder)
		if !ok {
			return fmt.Errorf("run %s: a model of kind %q has no value %q", r.Path, r.Model.Kind, name)
		}
		values, err = named.Value(name, r.scaling.Applied(images))
		return err
	})
	if err == nil && name == losses.Output {
		r.scaling.Undo(values)
	}
	return values, err
}

// Decodes returns an error if the model has no decoder, or one that reads more than the code, so that [Run.Decode] cannot work. A
// baseline decodes.
func (r *Run) Decodes() error {
	if r == nil || r.coder == nil {
		return errNoModel
	}
	if c, ok := r.coder.(interface{ Decodes() error }); ok {
		return c.Decodes()
	}
	return nil
}

// Columns describes the columns that a value is computed from: images, and those that a head or a layer reads. A baseline reads images.
func (r *Run) Columns(value string) []data.Column {
	if r == nil || r.network == nil {
		return []data.Column{{Name: losses.Images, Shape: r.Shape(), Type: data.Float32}}
	}
	return r.network.ColumnsOf(value)
}

// ValueOf is [Run.Value] for a value that is computed from other columns too: the values of the columns that [Run.Columns] lists, by name,
// row by row.
func (r *Run) ValueOf(name string, columns map[string][]float32) (values []float32, err error) {
	err = r.computing(func(c metrics.Coder) error {
		coder, ok := c.(*graph.Coder)
		if !ok {
			return fmt.Errorf("run %s: a model of kind %q has no value %q", r.Path, r.Model.Kind, name)
		}
		scaled := maps.Clone(columns)
		if images, ok := columns[losses.Images]; ok {
			scaled[losses.Images] = r.scaling.Applied(images)
		}
		values, err = coder.ValueOf(name, scaled)
		return err
	})
	if err == nil && name == losses.Output {
		r.scaling.Undo(values)
	}
	return values, err
}

// Values implements [metrics.ValueCoder]; a baseline has codes and outputs.
func (r *Run) Values() []string {
	if r == nil || r.coder == nil {
		return nil
	}
	if named, ok := r.coder.(metrics.ValueCoder); ok {
		return named.Values()
	}
	return []string{losses.Code, losses.Output}
}

// Named lists further values that [Run.Value] computes: the outputs of the layers by their paths, such as encoder.0, and what the
// layers publish, such as encoder.1.mean. A baseline has none.
func (r *Run) Named() []string {
	if r == nil || r.network == nil {
		return nil
	}
	return r.network.Layout.Named()
}

// ClassHeads implements [metrics.ValueCoder].
func (r *Run) ClassHeads() []string {
	if r == nil {
		return nil
	}
	if named, ok := r.coder.(metrics.ValueCoder); ok {
		return named.ClassHeads()
	}
	return nil
}

// Prediction is what a head of a classifier predicts of samples.
type Prediction struct {
	Head          string
	Classes       []string  // names of the classes, in the order of the columns of Probabilities
	Labels        []int     // the most probable class of each sample, an index into Classes
	Probabilities []float32 // one row per sample, one column per class: the softmax of the logits
}

// Probability is the probability of the most probable class of sample i.
func (p *Prediction) Probability(i int) float32 {
	return p.Probabilities[i*len(p.Classes)+p.Labels[i]]
}

// ErrNoClasses is the error of a model without a head that predicts classes.
var ErrNoClasses = errors.New("no loss of the model compares a head with labels: there are no classes to predict")

// Predict returns the classes that a head predicts of samples, one of [Run.ClassHeads]; "" is the only one. Samples are those of
// [Run.Encode]. A model without such a head gives [ErrNoClasses].
func (r *Run) Predict(head string, samples []float32) (*Prediction, error) {
	head, err := r.classHead(head)
	if err != nil {
		return nil, err
	}
	logits, err := r.Value(head, samples)
	if err != nil {
		return nil, err
	}
	return r.PredictionOf(head, logits, len(samples)/volume.Of(r.Shape())), nil
}

// classHead is the head that predicts classes, the only one if none is named.
func (r *Run) classHead(head string) (string, error) {
	if err := r.ready(); err != nil {
		return "", err
	}
	heads := r.ClassHeads()
	switch {
	case len(heads) == 0:
		return "", fmt.Errorf("%s: %w", r.Path, ErrNoClasses)
	case head == "" && len(heads) == 1:
		return heads[0], nil
	case !slices.Contains(heads, head):
		return "", fmt.Errorf("%s: head: got %q, want one of %q", r.Path, head, heads)
	}
	return head, nil
}

// PredictionOf returns the prediction from the logits of n samples, which an [Encoder] of that head computes.
func (r *Run) PredictionOf(head string, logits []float32, n int) *Prediction {
	k := len(logits) / max(1, n)
	p := &Prediction{Head: head, Classes: r.ClassNames(k), Labels: make([]int, n), Probabilities: make([]float32, len(logits))}
	for i := range n {
		row, to := logits[i*k:(i+1)*k], p.Probabilities[i*k:(i+1)*k]
		for j, z := range row {
			if z > row[p.Labels[i]] {
				p.Labels[i] = j
			}
		}
		most, sum := float64(row[p.Labels[i]]), 0.0
		for _, z := range row {
			sum += math.Exp(float64(z) - most)
		}
		for j, z := range row {
			to[j] = float32(math.Exp(float64(z)-most) / sum)
		}
	}
	return p
}

// ClassNames returns the names of n classes in the data set of the training, or their numbers if it has no names.
func (r *Run) ClassNames(n int) (names []string) {
	if r != nil {
		names = slices.Clone(r.classes[:min(n, len(r.classes))])
	}
	for i := len(names); i < n; i++ {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// reAtomed is a run's coder with other atoms.
type reAtomed struct {
	metrics.Coder
	run *Run
}

// Encode implements [metrics.Coder].
func (a *reAtomed) Encode(images []float32) (codes []float32, err error) {
	err = a.run.computing(func(metrics.Coder) error { codes, err = a.Coder.Encode(a.run.scaling.Applied(images)); return err })
	return codes, err
}

// Decode implements [metrics.Coder].
func (a *reAtomed) Decode(codes []float32) (images []float32, err error) {
	err = a.run.computing(func(metrics.Coder) error { images, err = a.Coder.Decode(codes); return err })
	if err == nil {
		a.run.scaling.Undo(images)
	}
	return images, err
}

// WithAtoms implements [metrics.Coder].
func (a *reAtomed) WithAtoms(atoms *metrics.Atoms) (metrics.Coder, error) {
	return a.run.WithAtoms(atoms)
}

// LastWeight implements [metrics.Weighted].
func (a *reAtomed) LastWeight() []float32 { return metrics.LastWeight(a.Coder) }

// Close implements [io.Closer]. It waits while the run computes.
func (a *reAtomed) Close() error {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return closeCoder(a.Coder)
}

func closeCoder(c metrics.Coder) error {
	if closer, ok := c.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// attacked calls f with the gradients of the run.
func (r *Run) attacked(f func(attack.Target) error) error {
	return r.computing(func(c metrics.Coder) error {
		target, ok := c.(attack.Target)
		if !ok {
			return fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
		}
		return f(target)
	})
}

// Close frees the run's compiled programs and goroutines, once nothing computes. Afterwards every method that returns an error
// returns [ErrClosed]; a second Close does nothing. Encoders of the run have their own Close.
func (r *Run) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.team != nil { // the zero Run has none
		defer r.team.Close()
	}
	if r.coder == nil {
		return nil
	}
	return closeCoder(r.coder)
}

// turns is a lock whose wait a context can end. The zero value is free.
type turns struct {
	once sync.Once
	free chan struct{} // holds one token while nobody has the lock
}

func (t *turns) token() chan struct{} {
	t.once.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	return t.free
}

// Lock waits for the lock.
func (t *turns) Lock() { <-t.token() }

// Within waits for the lock until ctx ends, and then returns its error.
func (t *turns) Within(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-t.token():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock gives the lock back.
func (t *turns) Unlock() { t.token() <- struct{}{} }

// errNoContext is the error of a nil context.
var errNoContext = errors.New("tessera: no context: give context.Background()")

// Evaluate is [Run.EvaluateOn] the test images of the data set, or all images where the set has no test split.
func (r *Run) Evaluate(ctx context.Context, chosen metrics.Selection) (*metrics.Result, error) {
	return r.EvaluateOn(ctx, data.TestSplit, chosen)
}

// EvaluateOn measures the run on one split of its data set: the test images, the images that were held out for validation, or
// the fitted ones. Without a selection it measures what `tessera eval` shows, see [metrics.Default]. Data that are missing, do
// not fit or lack labels that a chosen metric needs, and a validation split of a model that holds no images out, are a
// [*data.Error].
func (r *Run) EvaluateOn(ctx context.Context, split data.Split, chosen metrics.Selection) (*metrics.Result, error) {
	sample, err := r.Sample(ctx, split)
	if err != nil {
		return nil, err
	}
	return r.EvaluateSample(ctx, sample, chosen)
}

// EvaluateSample is [Run.EvaluateOn] for images that [Run.Sample] returned.
func (r *Run) EvaluateSample(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection) (result *metrics.Result, err error) {
	err = r.computing(func(c metrics.Coder) error {
		result, err = evaluation.Measure(ctx, r.Model, c, sample, chosen)
		return err
	})
	return result, err
}

// Report measures the run on images that it was not fitted to, the test images or else those that were held out for validation,
// and on at most [evaluation.MostFitted] evenly spaced fitted images. If no images are held out, it measures the fitted ones
// alone, and the report says so. On fitted images only the metrics of [evaluation.OnFitted] are measured. Fitted
// images that cannot be read are not an error. The errors are those of [Run.EvaluateOn].
func (r *Run) Report(ctx context.Context, chosen metrics.Selection) (*evaluation.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	plan := evaluation.PlanOf(r.Model)
	set, err := r.load(ctx, plan.First)
	if err != nil {
		return nil, err
	}
	sample, err := evaluation.Take(set, r.Model, r.Shape(), plan.First)
	if err != nil {
		return nil, err
	}
	first, err := r.EvaluateSample(ctx, sample, chosen)
	if err != nil {
		return nil, err
	}
	report := &evaluation.Report{Result: first, HeldOut: plan.Fitted != "", Note: plan.Note}
	both := evaluation.OnFitted(chosen)
	if !report.HeldOut || len(both) == 0 {
		return report, nil
	}
	if set.Train == nil { // test images do not bring the fitted ones with them
		set, report.Unread = r.load(ctx, plan.Fitted)
	}
	if report.Unread == nil {
		sample, report.Unread = evaluation.Take(set, r.Model, r.Shape(), plan.Fitted)
	}
	if report.Unread != nil {
		return report, ctx.Err()
	}
	report.FittedImages = sample.Images.Len()
	sample.Images = evaluation.Spread(sample.Images, evaluation.MostFitted)
	report.Fitted, err = r.EvaluateSample(ctx, sample, both)
	return report, err
}

// EvaluateImages measures the run on images of any origin, scaled as in the training. The result has their name in place of that of
// the data set.
func (r *Run) EvaluateImages(ctx context.Context, name string, images *data.Images, chosen metrics.Selection) (*metrics.Result, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if images == nil || images.Len() == 0 {
		return nil, &data.Error{Path: name, Problem: "there are no images to measure"}
	}
	if !slices.Equal(images.Shape, r.Shape()) {
		return nil, &data.Error{Path: name, Problem: fmt.Sprintf("its images do not have the shape of the training images (got %v, want %v)", images.Shape, r.Shape())}
	}
	return r.EvaluateSample(ctx, &evaluation.Sample{Split: evaluation.Given, Name: name, Images: images.Scaled(r.scaling)}, chosen)
}

// Attack measures what attacks do to the run: adversarial examples are computed from the images that it is evaluated on, the first
// limit of them (0: all). Equal seeds of the attacks give equal reports. A baseline, which has no gradients, gives [ErrNoGradients].
func (r *Run) Attack(ctx context.Context, attacks []attack.Attack, limit int) (*attack.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.attacked(func(attack.Target) error { return nil }); err != nil { // before images are read
		return nil, err
	}
	s, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	images := s.Images
	if limit > 0 {
		images = images.First(limit)
	}
	var report *attack.Report
	err = r.attacked(func(target attack.Target) error {
		report, err = attack.Measure(ctx, target, images.Float32(), attacks)
		return err
	})
	if err != nil {
		return nil, err
	}
	report.Model, report.Dataset = r.Model.Name, r.Model.Dataset.Name
	return report, nil
}

// ErrNoGradients is the error of an attack on a baseline.
var ErrNoGradients = errors.New("it has no gradients to attack it with")

// Images returns the test images of the data set, or all images where the set has no test split, before they are scaled. Data
// that are missing or do not fit are a [*data.Error].
func (r *Run) Images(ctx context.Context) (*data.Images, error) {
	s, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	return s.Images.Scaled(nil), nil
}

// Sample reads the images of a split of the run's data set with their labels: what [Run.EvaluateOn] measures. The errors are
// those of EvaluateOn.
func (r *Run) Sample(ctx context.Context, split data.Split) (*evaluation.Sample, error) {
	set, err := r.load(ctx, split)
	if err != nil {
		return nil, err
	}
	return evaluation.Take(set, r.Model, r.Shape(), split)
}

// FoundPart is a true part of a data set and the atom that is most similar to it.
type FoundPart struct {
	Kind string // what the part is: "limb"
	metrics.Part
}

// Parts looks for the true parts of the run's data set among its atoms and its bias: found is a cosine similarity of
// at least [metrics.PartCosine]. It returns nil where the true parts are not known or the decoder has no atoms.
func (r *Run) Parts(ctx context.Context) ([]FoundPart, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	atoms := r.Atoms()
	if atoms == nil {
		return nil, nil
	}
	if data.HasTest(r.Model.Dataset.Source) { // published images: nobody knows their parts
		return nil, nil
	}
	set, err := r.load(ctx, data.TestSplit)
	if err != nil || len(set.Parts) == 0 {
		return nil, err
	}
	table, err := metrics.PartsRecovered(set.Parts, atoms, metrics.PartCosine)
	if err != nil {
		return nil, err
	}
	found := make([]FoundPart, len(table))
	for i, p := range table {
		found[i] = FoundPart{Kind: set.Kinds[i], Part: p}
	}
	return found, nil
}

// load reads the images of a split.
func (r *Run) load(ctx context.Context, split data.Split) (*data.Set, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	source := r.Model.Dataset.Source
	if source == nil {
		return nil, errors.New("tessera: the model has no data set")
	}
	if r.options.Images != nil {
		var err error
		if source, err = r.options.Images.For(source); err != nil {
			return nil, err
		}
	}
	set, err := data.Load(ctx, r.origin.Placed(source), r.origin.Dirs(r.dirs), r.Model.Dataset.NeedOf(split))
	if err != nil || set == nil {
		return set, err
	}
	return set.Scaled(r.scaling), r.origin.Changed(set.Name, set.Files)
}
