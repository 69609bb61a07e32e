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
	"sync/atomic"

	"gonum.org/v1/gonum/mat"
	"tessera/attack"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/vectors"
	"tessera/losses"
	"tessera/metrics"
	"tessera/posthoc"
)

// Run is a trained model in memory. It is a [metrics.Coder]: it encodes, decodes and returns its atoms. Several goroutines may
// use a Run, but only one at a time computes; with an [Encoder] they encode in parallel.
type Run struct {
	Model  *config.Model // declaration of the training, with all defaults
	Path   string        // folder of the run, or name of the file from which the run was read
	Epoch  int           // epoch of the parameters, with early stopping the best one; for a baseline, iterations
	Step   int           // number of optimizer steps of the parameters
	Result *train.Result // result of the training; nil for a run that was read from a file

	mu      turns         // locked during computations
	coder   metrics.Coder // the coder; nil in the zero Run
	network *graph.Model  // the auto-encoder; nil for a baseline
	scaling *data.Scaling // scaling of samples for the coder; nil if there is none
	span    [2]float32    // range of the fitted samples
	classes []string      // names of the classes; nil if unknown
	matrix  matrixNames
	trained *train.Trained                          // the model and the folder from which it was read
	heads   atomic.Pointer[map[string]posthoc.Head] // calibrations and thresholds of the heads; the map does not change
	options Options
	dirs    data.Dirs
	origin  train.Environment // environment of the training, which records the paths of its data
	team    *team.Team
	closed  bool
	codes   codeCache
}

// newRun returns the run of a model that was read from a file. The run owns its team.
func (o Options) newRun(t *train.Trained, path string, backend ir.Backend, team *team.Team) *Run {
	r := &Run{Model: t.Spec, Path: path, Epoch: t.Epoch, Step: t.Step,
		coder: t.Coder(backend), network: t.Model, scaling: t.Scaling, span: t.Range, classes: t.Classes, matrix: matrixNames{rows: t.RowNames, columns: t.ColumnNames}, trained: t, options: o, dirs: data.SearchDirs(o.Data), team: team}
	r.heads.Store(&t.PostHoc)
	return r
}

// ErrClosed is the error for the use of a closed run or encoder.
var ErrClosed = errors.New("closed")

// errNoModel is the error for a run that was not returned by this package.
var errNoModel = errors.New("tessera: the run holds no model: take one that Train, Resume or Open returned")

// ready returns an error if the run has no model or is closed.
func (r *Run) ready() error {
	if r == nil {
		return errNoModel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.usable()
}

// usable is like [Run.ready], for callers that hold the lock.
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

// Shape implements [metrics.Coder]; nil for the zero Run.
func (r *Run) Shape() []int {
	if r == nil || r.coder == nil {
		return nil
	}
	return r.coder.Shape()
}

// Units implements [metrics.Coder]; 0 for the zero Run.
func (r *Run) Units() int {
	if r == nil || r.coder == nil {
		return 0
	}
	return r.coder.Units()
}

// Encode implements [metrics.Coder]. The images are scaled as in the training (`scale` of the data set). NaN is a missing
// entry, if the data set allows missing entries (`missing`). After Close, Encode returns [ErrClosed].
func (r *Run) Encode(images []float32) (codes []float32, err error) {
	err = r.computing(func(c metrics.Coder) error { codes, err = c.Encode(r.scaled(images)); return err })
	return codes, err
}

// scaled returns the model's inputs for images: scaled as in the training. If the data set has missing or hidden entries and
// the model does not take NaN, 0 replaces NaN.
func (r *Run) scaled(images []float32) []float32 {
	return zeroNaN(r.scaling.Applied(images), r.Model.Holed() && !metrics.TakesHoles(r.coder))
}

// TakesHoles implements [metrics.HolesCoder]: pca, nmf and sparse_nmf encode the observed entries of samples, even if no
// entries were missing in their training. With scale = "whiten" they do not: every scaled value depends on all entries.
func (r *Run) TakesHoles() bool {
	return r != nil && metrics.TakesHoles(r.coder) && (r.scaling == nil || r.scaling.Mix == nil)
}

// zeroNaN returns values with 0 for NaN if missing is true. It may return the slice itself.
func zeroNaN(values []float32, missing bool) []float32 {
	isNaN := func(v float32) bool { return v != v }
	if !missing || !slices.ContainsFunc(values, isNaN) {
		return values
	}
	values = slices.Clone(values)
	for i, v := range values {
		if isNaN(v) {
			values[i] = 0
		}
	}
	return values
}

// observed returns the mask of the observed values: 0 for NaN, else 1.
func observed(values []float32) []float32 {
	mask := make([]float32, len(values))
	for i, v := range values {
		if v == v {
			mask[i] = 1
		}
	}
	return mask
}

// Decode implements [metrics.Coder]. The images are in the units before scaling. After Close, Decode returns [ErrClosed].
func (r *Run) Decode(codes []float32) (images []float32, err error) {
	err = r.computing(func(c metrics.Coder) error { images, err = c.Decode(codes); return err })
	if err == nil {
		r.scaling.Undo(images)
	}
	return images, err
}

// ValueNames returns the names of the values of a sample, in order, as in the file of the data set: for a data set csv, the names of
// its columns. It returns nil if the values have no names. If the file is missing or has changed since the training, by its SHA-256, it
// returns a [*data.Error].
func (r *Run) ValueNames(ctx context.Context) ([]string, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	return r.origin.ValueNames(ctx, r.Model.Dataset)
}

// Range returns the smallest and the largest value of the fitted samples before scaling: 0 and 1 for bytes; 0 and 0 for the
// zero Run.
func (r *Run) Range() (low, high float32) {
	if r == nil {
		return 0, 0
	}
	return r.span[0], r.span[1]
}

// Atoms implements [metrics.Coder]; nil for the zero Run.
func (r *Run) Atoms() *metrics.Atoms {
	if r == nil || r.coder == nil {
		return nil
	}
	return r.coder.Atoms()
}

// WithAtoms implements [metrics.Coder]. The returned coder uses the run's goroutines: after Close of the run, its Encode and
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

// Value implements [metrics.ValueCoder]: it returns the named value, one of [Run.Values] or [Run.Named], for images, row by
// row. A baseline has no named values.
func (r *Run) Value(name string, images []float32) (values []float32, err error) {
	err = r.computing(func(c metrics.Coder) error {
		named, ok := c.(metrics.ValueCoder)
		if !ok {
			return fmt.Errorf("run %s: a model of kind %q has no value %q", r.Path, r.Model.Kind, name)
		}
		values, err = named.Value(name, r.scaled(images))
		return err
	})
	if err == nil && name == losses.Output {
		r.scaling.Undo(values)
	}
	return values, err
}

// Components returns the components of a mixture in the units before scaling, nil for another model.
func (r *Run) Components() (list []metrics.Component) {
	_ = r.computing(func(c metrics.Coder) error {
		if m, ok := metrics.As[metrics.Mixture](c); ok {
			list = m.Components()
		}
		return nil
	})
	if r == nil || r.scaling == nil {
		return list
	}
	for _, c := range list {
		r.unmix(c)
		for i, f := range r.scaling.Factor {
			c.Mean[i] = c.Mean[i]/float64(f) + float64(r.scaling.Shift[i])
			for j := range c.Mean {
				if c.Covariance != nil {
					c.Covariance[i*len(c.Mean)+j] /= float64(f) * float64(r.scaling.Factor[j])
				}
			}
		}
	}
	return list
}

// unmix multiplies mean and covariance of a component by the inverse of the matrix of a whitening.
func (r *Run) unmix(c metrics.Component) {
	n := len(c.Mean)
	if r.scaling.Unmix == nil {
		return
	}
	u := mat.NewDense(n, n, vectors.Wide(r.scaling.Unmix))
	var mean, left, both mat.Dense
	mean.Mul(u, mat.NewDense(n, 1, c.Mean))
	copy(c.Mean, mean.RawMatrix().Data)
	if c.Covariance != nil {
		left.Mul(u, mat.NewDense(n, n, c.Covariance))
		both.Mul(&left, u)
		copy(c.Covariance, both.RawMatrix().Data)
	}
}

// Decodes returns an error if [Run.Decode] cannot work: the model has no decoder, or its decoder needs more inputs than the
// code. A baseline decodes.
func (r *Run) Decodes() error {
	if r == nil || r.coder == nil {
		return errNoModel
	}
	if c, ok := r.coder.(interface{ Decodes() error }); ok {
		return c.Decodes()
	}
	return nil
}

// Reconstructs returns an error if the output is not a reconstruction of the images: the model has no decoder, or its decoder
// is trained only on hidden parts of the images. A baseline reconstructs.
func (r *Run) Reconstructs() error {
	if r == nil || r.coder == nil {
		return errNoModel
	}
	if c, ok := r.coder.(interface{ Reconstructs() error }); ok {
		return c.Reconstructs()
	}
	return nil
}

// Columns returns descriptions of the columns from which a value is computed: images, and the columns that a head or a layer
// reads, labels among them. A baseline reads images.
func (r *Run) Columns(value string) []data.Column {
	if r == nil || r.network == nil {
		return []data.Column{{Name: losses.Images, Shape: r.Shape(), Type: data.Float32}}
	}
	return r.named(r.network.ColumnsOf(value))
}

// InFile returns descriptions of the columns that a file must contain for [Run.Given] to return the given columns. Drawn
// columns are replaced by the columns from which they are drawn.
func (r *Run) InFile(columns []data.Column) []data.Column {
	if r == nil || r.Model == nil {
		return columns
	}
	return r.named(r.Model.BehindDrawn(columns))
}

// named adds the names of the classes to the column of labels, if columns contains it.
func (r *Run) named(columns []data.Column) []data.Column {
	for i, c := range columns {
		if c.Name == losses.Labels {
			columns[i].Names = r.classes
		}
	}
	return columns
}

// Given returns the values of all columns of samples that were read from a file, labels included. Drawn columns are drawn as in an evaluation:
// the random stream of a sample depends on the seed of the run and the sample's position in the file.
func (r *Run) Given(samples *data.Images, columns []data.Column) (map[string][]float32, error) {
	all := samples.All()
	if all == nil {
		all = map[string][]float32{}
	}
	all[data.ImagesColumn] = samples.Raw() // NaN are missing entries
	if r == nil || r.Model == nil || r.Model.Dataset.Drawn == nil {
		return all, nil
	}
	var needed []data.Drawn
	for _, d := range *r.Model.Dataset.Drawn {
		if slices.ContainsFunc(columns, func(c data.Column) bool { return c.Name == d.Name }) {
			needed = append(needed, d)
		}
	}
	drawn, err := samples.DrawnAsRead(r.Model.Train.Seed, needed...)
	maps.Copy(all, drawn)
	return all, err
}

// ValueOf is like [Run.Value], for a value that is computed from several columns: columns contains the values of the columns
// in [Run.Columns], by name, row by row.
func (r *Run) ValueOf(name string, columns map[string][]float32) (values []float32, err error) {
	err = r.computing(func(c metrics.Coder) error {
		scaled := maps.Clone(columns)
		for _, c := range r.Columns(name) {
			if values, ok := columns[c.Name]; ok && c.AsImages {
				scaled[c.Name] = r.scaled(values)
			}
		}
		if images, ok := columns[losses.Images]; ok {
			scaled[losses.Images] = r.scaled(images)
			if scaled[data.ObservedColumn] == nil && r.Model.Holed() {
				scaled[data.ObservedColumn] = observed(images)
			}
		}
		coder, ok := c.(*graph.Coder)
		switch {
		case ok:
			values, err = coder.ValueOf(name, scaled)
		case name == losses.Code || name == losses.Output: // of a baseline
			if values, err = c.Encode(scaled[losses.Images]); err == nil && name == losses.Output {
				values, err = c.Decode(values)
			}
		default:
			err = fmt.Errorf("run %s: a model of kind %q has no value %q", r.Path, r.Model.Kind, name)
		}
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

// Named lists further values that [Run.Value] computes: the outputs of layers by path, for example encoder.0, and the values
// that layers publish, for example encoder.1.mean. A baseline has none.
func (r *Run) Named() []string {
	if r == nil || r.network == nil {
		return nil
	}
	return r.network.Layout.Named()
}

// ShapeOf returns the shape of a value of [Run.Values] or [Run.Named] for one image; nil if there is none of this name, and for
// a baseline.
func (r *Run) ShapeOf(name string) []int {
	if r == nil || r.network == nil || !slices.Contains(r.Values(), name) && !slices.Contains(r.Named(), name) {
		return nil
	}
	return slices.Clone(r.shapeOf(name))
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

// ClassColumn implements [metrics.ClassColumner].
func (r *Run) ClassColumn(head string) string {
	if r == nil {
		return ""
	}
	if of, ok := r.coder.(metrics.ClassColumner); ok {
		return of.ClassColumn(head)
	}
	return data.LabelsColumn
}

// Prediction is the prediction of a head of a classifier for samples.
type Prediction struct {
	Head          string
	Classes       []string  // names of the classes, in the order of the columns of Probabilities
	Labels        []int     // index in Classes of the predicted class of each sample: the most probable class, unless the head has thresholds
	Probabilities []float32 // one row per sample, one column per class: the softmax of the logits
}

// Probability returns the probability of the predicted class of sample i.
func (p *Prediction) Probability(i int) float32 {
	return p.Probabilities[i*len(p.Classes)+p.Labels[i]]
}

// ErrNoClasses is the error for a model without a head that predicts classes.
var ErrNoClasses = errors.New("no loss of the model compares a head with labels: there are no classes to predict")

// Predict returns the classes that a head predicts for samples. head is one of [Run.ClassHeads]; "" selects the only one.
// Samples have the form of [Run.Encode]. It returns [ErrNoClasses] for a model without such a head.
func (r *Run) Predict(head string, samples []float32) (*Prediction, error) {
	return r.PredictFrom(head, map[string][]float32{losses.Images: samples})
}

// PredictFrom is like [Run.Predict], for a head that is computed from several columns: columns contains the values of the
// columns in [Run.Columns], by name, row by row. A head with thresholds ([Run.FitThresholds]) also needs the column of the
// groups, one of [Run.DecisionColumns].
func (r *Run) PredictFrom(head string, columns map[string][]float32) (*Prediction, error) {
	head, err := r.classHead(head)
	if err != nil {
		return nil, err
	}
	logits, err := r.ValueOf(head, columns)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, c := range r.Columns(head) {
		n = len(columns[c.Name]) / c.Size()
	}
	p, err := r.PredictionOf(head, logits, n)
	if err == nil {
		err = r.decide(p, logits, columns)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// classHead returns the name of a head that predicts classes: head, or the only one if head is "".
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

// PredictionOf returns the prediction for n samples from the logits that an [Encoder] of the head computes. Where a logit is not finite,
// a sample has no class: the error is a [*data.Error] that names it.
func (r *Run) PredictionOf(head string, logits []float32, n int) (*Prediction, error) {
	k := len(logits) / max(1, n)
	p := &Prediction{Head: head, Classes: r.classNames(head, k), Labels: make([]int, n), Probabilities: make([]float32, len(logits))}
	for i := range n {
		row, to := logits[i*k:(i+1)*k], p.Probabilities[i*k:(i+1)*k]
		class, err := vectors.Class(row)
		if err != nil {
			return nil, &data.Error{Problem: fmt.Sprintf("sample %d: head %q", i, head), Err: err}
		}
		p.Labels[i] = class
		most, sum := float64(row[p.Labels[i]]), 0.0
		for _, z := range row {
			sum += math.Exp(float64(z) - most)
		}
		for j, z := range row {
			to[j] = float32(math.Exp(float64(z)-most) / sum)
		}
	}
	return p, nil
}

// ClassNames returns the names of n classes in the data set of the training, or their numbers if they have no names.
func (r *Run) ClassNames(n int) []string {
	if r == nil {
		return named(nil, n)
	}
	return named(r.classes, n)
}

// HeadClasses returns the names of the classes that a head predicts, or their numbers if they have no names.
func (r *Run) HeadClasses(head string) []string {
	if r == nil || r.network == nil {
		return nil
	}
	return r.classNames(head, r.network.Layout.Size(head))
}

// classNames returns the names of the n classes that a head predicts.
func (r *Run) classNames(head string, n int) []string {
	if column := r.ClassColumn(head); r != nil && r.network != nil && column != data.LabelsColumn {
		c, _ := r.network.Layout.Column(column)
		return named(c.Names, n)
	}
	return r.ClassNames(n)
}

// named returns n names: the known names first, then numbers.
func named(known []string, n int) []string {
	names := slices.Clone(known[:min(n, len(known))])
	for i := len(names); i < n; i++ {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// reAtomed is the coder of a run with other atoms.
type reAtomed struct {
	metrics.Coder
	run *Run
}

// Encode implements [metrics.Coder].
func (a *reAtomed) Encode(images []float32) (codes []float32, err error) {
	err = a.run.computing(func(metrics.Coder) error { codes, err = a.Coder.Encode(a.run.scaled(images)); return err })
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

// TakesHoles implements [metrics.HolesCoder].
func (a *reAtomed) TakesHoles() bool { return a.run.TakesHoles() }

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

// attacked calls f with the model's gradients.
func (r *Run) attacked(f func(attack.Target) error) error {
	return r.computing(func(c metrics.Coder) error {
		target, ok := c.(attack.Target)
		if !ok {
			return fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
		}
		return f(target)
	})
}

// Close waits until no goroutine computes and frees the run's compiled programs and goroutines. Afterwards every method that
// returns an error returns [ErrClosed]; a second Close does nothing. Close does not close encoders of the run.
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

// turns is a mutex with a Lock that a context can cancel. The zero value is unlocked.
type turns struct {
	once sync.Once
	free chan struct{} // holds one token while the lock is free
}

func (t *turns) token() chan struct{} {
	t.once.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	return t.free
}

// Lock acquires the lock.
func (t *turns) Lock() { <-t.token() }

// Within acquires the lock, or returns ctx's error once ctx is done.
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

// Unlock releases the lock.
func (t *turns) Unlock() { t.token() <- struct{}{} }

// errNoContext is the error for a nil context.
var errNoContext = errors.New("tessera: no context: give context.Background()")
