// Package coder computes with trained models, for any number of goroutines and in the units of the samples before scaling. A [Coder] is a
// stack: it locks, scales, and applies what was fitted to the heads after the training to the coder of a model. An [Encoder] computes one
// value in parallel.
package coder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
	"tessera/posthoc"
)

var _ metrics.Coder = (*Coder)(nil)

// described is what a coder knows and computes of a model: a [*graph.Coder], or a method of package classical as a [plain].
type described interface {
	metrics.Coder
	metrics.ValueCoder
	metrics.ClassColumner
	metrics.Weighted
	// Named lists further values that Value computes: the outputs of layers by path, for example encoder.0, and the values that layers
	// publish, for example encoder.1.mean. A method of package classical has none.
	Named() []string
	// ShapeOf returns the shape of a value for one sample; nil for an unknown name.
	ShapeOf(name string) []int
	// Columns describes the columns from which a value is computed: images, and the columns that a head or a layer reads, labels too.
	Columns(name string) []data.Column
	// Decodes returns an error if Decode cannot work: the model has no decoder, or its decoder reads more than the code.
	Decodes() error
	// Reconstructs returns an error if the output is no reconstruction of the samples: the model has no decoder, or its decoder is trained
	// only on hidden parts of the samples.
	Reconstructs() error
	// ValueOf is Value for a value that is computed from several columns, which are given by name, row by row.
	ValueOf(name string, columns map[string][]float32) ([]float32, error)
}

var (
	_ described          = (*graph.Coder)(nil)
	_ described          = plain{}
	_ described          = (*Coder)(nil)
	_ metrics.HolesCoder = (*Coder)(nil)
)

// Coder is a trained model in memory. Several goroutines may use it, but only one at a time computes; with an [Encoder] they compute in
// parallel. Samples and images have the units before scaling. NaN is a missing entry, if the data set allows missing entries (`missing`).
type Coder struct {
	described
	Origin train.Environment // environment of the training, which records the paths of its data

	path    string
	trained *train.Trained
	inner   metrics.Coder // of scaled samples, without what was fitted to the heads
	backend string        // name of the back end
	team    *team.Team
	shift   *data.Scaling // what has been subtracted from samples, see [Coder.Centred]; nil for nothing
	*state
}

// state is what a coder and its [Coder.Centred] share.
type state struct {
	heads  atomic.Pointer[map[string]posthoc.Head] // what was fitted to the heads; the map does not change
	mu     Turns                                   // locked during computations
	raw    bool                                    // the first change of the heads discards what the folder of the run says about them
	closed bool
}

// Centred returns the coder, if its scaling is exact, of samples minus the shift of the scaling: see [data.Scaling.Split]. float32 does not
// represent the samples themselves. Inputs, outputs and components are differences from the shift, of which Scaling is the scaling and Range
// is [0,0]. Given takes samples before scaling. Both coders share programs, heads and lock, and are closed together. Another coder is returned itself.
func (c *Coder) Centred() *Coder {
	if c == nil || c.trained == nil {
		return c
	}
	shift, rest := c.Scaling().Split()
	if shift == nil {
		return c
	}
	trained, other := *c.trained, *c
	trained.Scaling, trained.Range, trained.Means = rest, [2]float32{}, trained.Means.Minus(shift)
	other.trained, other.shift = &trained, shift
	return &other
}

// Options are the options of a [Coder].
type Options struct {
	Path        string     // folder of the run, or name of the file from which it was read, for messages
	Backend     ir.Backend // runs the programs of the coder
	Team        *team.Team // goroutines of the back end; the coder closes it
	Raw         bool       // what was fitted to the heads in the folder of the run is discarded by the first change
	BackendName string
}

// New returns the coder of a trained model. Without a model (nil) its methods return an error.
func New(t *train.Trained, o Options) *Coder {
	c := &Coder{path: o.Path, trained: t, backend: o.BackendName, team: o.Team, state: &state{raw: o.Raw}}
	switch {
	case t == nil:
		c.trained, c.described = &train.Trained{Spec: &config.Model{}}, graph.NewCoder(nil, nil)
	case t.Baseline != nil:
		c.inner, c.described = t.Baseline, plain{t.Baseline}
	default:
		of := graph.NewCoder(t.Model, o.Backend)
		c.inner, c.described = of, of
	}
	heads := c.trained.PostHoc // its own variable: a change of the field must not change what others read
	c.heads.Store(&heads)
	return c
}

// ErrClosed is the error for the use of a closed run or encoder.
var ErrClosed = errors.New("closed")

// errNoModel is the error for a run that was not returned by this package.
var errNoModel = errors.New("tessera: the run holds no model: take one that Train, Resume or Open returned")

var errNoContext = errors.New("tessera: no context: give context.Background()")

// Ready returns an error if the coder has no model or is closed.
func (c *Coder) Ready() error { return c.Do(func(metrics.Coder) error { return nil }) }

// Do calls f, while no other goroutine computes, with the coder of scaled samples, which applies what was fitted to the heads.
func (c *Coder) Do(f func(metrics.Coder) error) error { return c.DoWith(c.Heads(), f) }

// DoWith is [Coder.Do] with other calibrations and thresholds of the heads.
func (c *Coder) DoWith(heads map[string]posthoc.Head, f func(metrics.Coder) error) error {
	if c == nil || c.inner == nil {
		return errNoModel
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("run %s: %w", c.path, ErrClosed)
	}
	if of, ok := c.inner.(*graph.Coder); ok {
		return f(of.WithPostHoc(heads).WithLanguage(c.Language()))
	}
	return f(c.inner)
}

// scaled returns a coder for samples before scaling.
func (c *Coder) scaled(inner metrics.Coder) scaled {
	return scaled{inner, c.reading(inner)}
}

// reading returns how a model reads samples.
func (c *Coder) reading(inner metrics.Coder) reading {
	return reading{c.trained.Scaling, c.Outputs(), c.trained.Spec.Holed() && !metrics.TakesHoles(inner), c.trained.Means, volume.Of(c.Shape())}
}

// Unwrap returns the coder of the model, whose capabilities [metrics.As] finds. What it computes is neither locked nor scaled.
func (c *Coder) Unwrap() metrics.Coder { return c.inner }

// Encode returns the codes of images. A value that is not finite, unless it is NaN and the model takes missing entries, is a [*data.Error].
func (c *Coder) Encode(images []float32) (codes []float32, err error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	columns := map[string][]float32{losses.Images: images}
	if err := c.finite("encode", columns, nil); err != nil {
		return nil, err
	}
	if c.trained.Model != nil && slices.ContainsFunc(c.Columns(losses.Code), func(c data.Column) bool { return c.Name == data.ObservedColumn }) {
		return c.ValueOf(losses.Code, columns) // which finds what is observed
	}
	err = c.Do(func(m metrics.Coder) error { codes, err = c.scaled(m).Encode(images); return err })
	return codes, err
}

func (c *Coder) Decode(codes []float32) (images []float32, err error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if err := finite(codes, max(1, c.Units()), func(int) bool { return false }); err != nil {
		return nil, fmt.Errorf("model %q: decode: %w", c.trained.Spec.Name, err)
	}
	err = c.Do(func(m metrics.Coder) error { images, err = c.scaled(m).Decode(codes); return err })
	return images, err
}

// finite returns a [*data.Error] for the first value that is not finite, of the images and of columns that are read. A value
// may be NaN where the model takes missing entries, and where a mask says what is missing.
func (c *Coder) finite(what string, columns map[string][]float32, reads []data.Column) error {
	holes := c.TakesHoles() || c.trained.Spec.Holed()
	for name, values := range columns {
		i := slices.IndexFunc(reads, func(c data.Column) bool { return c.Name == name })
		width, lack := volume.Of(c.Shape()), holes
		if i >= 0 {
			width, lack = reads[i].Size(), holes && (name == losses.Images || reads[i].AsImages)
		} else if name != losses.Images {
			continue
		}
		if err := finite(values, max(1, width), func(int) bool { return lack || columns[maskOf(name)] != nil }); err != nil {
			if name != losses.Images {
				err = fmt.Errorf("column %q: %w", name, err)
			}
			return fmt.Errorf("model %q: %s: %w", c.trained.Spec.Name, what, err)
		}
	}
	return nil
}

// finite returns a [*data.Error] for the first value of rows that is not finite. Value i of a row may be NaN where lack is true.
func finite(rows []float32, width int, lack func(i int) bool) error {
	for i, v := range rows {
		if v-v != 0 && !(v != v && lack(i%width)) {
			return &data.Error{Problem: fmt.Sprintf("row %d, value %d: got %v, want a finite number", i/width, i%width, v)}
		}
	}
	return nil
}

// WithAtoms implements [metrics.Coder]. The returned coder shares the goroutines of this one, and ends with it.
func (c *Coder) WithAtoms(a *metrics.Atoms) (other metrics.Coder, err error) {
	err = c.Do(func(m metrics.Coder) error {
		made, err := c.scaled(m).WithAtoms(a)
		other = &reAtomed{made, c}
		return err
	})
	if err != nil {
		return nil, err
	}
	return other, nil
}

// Value implements [metrics.ValueCoder]: it returns the named value, one of Values or Named, row by row.
func (c *Coder) Value(name string, images []float32) ([]float32, error) {
	return c.ValueOf(name, map[string][]float32{losses.Images: images})
}

// ValueOf is like [Coder.Value], for a value that is computed from several columns: columns contains the values of the columns in
// Columns, by name, row by row.
func (c *Coder) ValueOf(name string, columns map[string][]float32) (values []float32, err error) {
	err = c.Do(func(m metrics.Coder) error {
		if of, ok := m.(classical.Model); ok {
			m = plain{of}
		} else if len(columns) > 1 { // here, because a mask is read before the model reads it
			for _, w := range c.trained.Spec.Required(c.trained.Layout, name) {
				if err := w.Check(columns[w.Column]); err != nil {
					return err
				}
			}
		}
		reads := c.Columns(name)
		if len(reads) > 0 { // an unknown value has none
			if err := c.finite(name, columns, reads); err != nil {
				return err
			}
		}
		values, err = c.scaled(m).valueOf(name, columns, reads)
		return err
	})
	return values, err
}

// TakesHoles implements [metrics.HolesCoder]: pca, nmf and sparse_nmf encode the observed entries of samples, even if no entries were
// missing in their training. With scale = "whiten" they do not: every scaled value depends on all entries.
func (c *Coder) TakesHoles() bool { return c.inner != nil && c.scaled(c.inner).TakesHoles() }

// Components returns the components of a mixture in the units before scaling, nil for another model.
func (c *Coder) Components() (list []metrics.Component) {
	_ = c.Do(func(m metrics.Coder) error { list = c.scaled(m).components(); return nil })
	return list
}

// Sampler calls f with a capability of the model, such as [metrics.Sampler], and removes the scaling of the images that f returns. The
// error is [metrics.ErrNoSampler] for a model without it.
func Sampler[T any](c *Coder, f func(T) ([]float32, error)) (images []float32, err error) {
	err = c.Do(func(m metrics.Coder) error {
		of, ok := metrics.As[T](m)
		if !ok {
			return metrics.ErrNoSampler
		}
		if images, err = f(of); err == nil {
			c.trained.Scaling.Undo(images)
		}
		return err
	})
	return images, err
}

// Range returns the smallest and the largest value of the fitted samples before scaling: 0 and 1 for bytes.
func (c *Coder) Range() (low, high float32) { return c.trained.Range[0], c.trained.Range[1] }

// Seen returns what the model knows of the samples to which it was fitted.
func (c *Coder) Seen() data.Seen {
	low, high := c.Range()
	return data.Seen{Shape: c.Shape(), Low: low, High: high, Means: c.trained.Means, Scaling: c.Scaling()}
}

// Scaling returns the scaling of the samples that the model reads; nil for none.
func (c *Coder) Scaling() *data.Scaling { return c.trained.Scaling }

// Outputs returns the scaling of the output: that of the samples, or nil if the output is trained to equal something else, such as a column.
func (c *Coder) Outputs() *data.Scaling {
	if !c.OutputIsSample() {
		return nil
	}
	return c.trained.Scaling
}

// OutputIsSample reports whether the values of the output are those of a sample: see [config.Model.OutputIsSample].
func (c *Coder) OutputIsSample() bool { return c.trained.OutputIsSample() }

// Digest returns the SHA-256 of the file of the parameters.
func (c *Coder) Digest() string { return c.trained.Digest }

// Close waits until no goroutine computes and frees the compiled programs and goroutines. Afterwards every method that returns an error
// returns [ErrClosed]; a second Close does nothing. Encoders remain open.
func (c *Coder) Close() error {
	if c == nil || c.state == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.team != nil {
		defer c.team.Close()
	}
	return closeCoder(c.inner)
}

func closeCoder(c metrics.Coder) error {
	if closer, ok := c.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// reAtomed is a coder with other atoms.
type reAtomed struct {
	metrics.Coder // of samples before scaling
	of            *Coder
}

func (a *reAtomed) Encode(images []float32) (codes []float32, err error) {
	err = a.of.Do(func(metrics.Coder) error { codes, err = a.Coder.Encode(images); return err })
	return codes, err
}

func (a *reAtomed) Decode(codes []float32) (images []float32, err error) {
	err = a.of.Do(func(metrics.Coder) error { images, err = a.Coder.Decode(codes); return err })
	return images, err
}

func (a *reAtomed) WithAtoms(atoms *metrics.Atoms) (metrics.Coder, error) {
	return a.of.WithAtoms(atoms)
}

func (a *reAtomed) TakesHoles() bool { return a.of.TakesHoles() }

func (a *reAtomed) Unwrap() metrics.Coder { return a.Coder }

// Close implements [io.Closer]. It waits while the run computes.
func (a *reAtomed) Close() error {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return closeCoder(a.Coder.(scaled).Coder)
}

// Turns is a mutex with a Lock that a context can cancel. The zero value is unlocked.
type Turns struct {
	once sync.Once
	free chan struct{} // holds one token while the lock is free
}

func (t *Turns) token() chan struct{} {
	t.once.Do(func() {
		t.free = make(chan struct{}, 1)
		t.free <- struct{}{}
	})
	return t.free
}

// Lock acquires the lock.
func (t *Turns) Lock() { <-t.token() }

// Within acquires the lock, or returns ctx's error once ctx is done.
func (t *Turns) Within(ctx context.Context) error {
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
func (t *Turns) Unlock() { t.token() <- struct{}{} }
