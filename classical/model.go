// Package classical contains the methods that are not trained by gradients through a graph: principal components, k-means and
// non-negative matrix factorisations. A [Method] is the declaration, a [Model] its fit, and [Fit] runs it. Every model is a
// [metrics.Coder] from its first iteration on, so all metrics and figures of auto-encoders apply.
//
// A method is one file: a struct whose tagged fields are the keys of its table in models.toml, registered in
// [config.Baselines], and an unexported model that fits it. X are n images of p pixels in rows, H their codes (n x k),
// W the atoms (k x p), and X is approximated by H W (plus the mean image in pca).
//
// A fit depends only on its seed and its images, to the bit: work is divided by size, never by the number of processors. A
// fit that is interrupted, saved and restored gives the same bytes as an uninterrupted one.
package classical

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/volume"
	"tessera/metrics"
)

// Method contains the settings of a baseline. A method that adds a bias to every decoded image also has a method Biased()
// bool that returns true.
type Method interface {
	config.Baseline
	// New returns an unfitted model for images of the given shape, (height, width) or (height, width, channels). Every random
	// choice of its fit is determined by seed.
	New(shape []int, seed uint64) (Model, error)
	// MostIterations returns the number of iterations of a fit that does not converge earlier.
	MostIterations() int
}

// settings is implemented by the settings of every method of this package.
type settings interface {
	Method
	config.Fitted
}

// Model is a baseline that can be fitted, saved and restored. It can encode images at any time. Its methods must not be
// called concurrently.
//
// [Fit] performs a complete fit. To resume an interrupted fit, call Restore and then Begin with the same images. To encode
// images with a finished fit, Restore is sufficient.
type Model interface {
	metrics.Coder
	// Begin takes the images to fit, which must not change afterwards, and prepares the initial or restored atoms for Step. It
	// returns a [part.KeyError] for a setting that is not suitable for the images, a [*data.Error] for images that the method
	// does not accept, and [ErrOtherImages] for images other than those of the restored fit.
	Begin(ctx context.Context, images Images) error
	// Step performs one iteration. When ctx ends it returns the error of ctx; the fit can resume from the model's state.
	Step(ctx context.Context) (Progress, error)
	// Done reports whether the fit has ended because it has converged or used up its iterations.
	Done() bool
	// State returns everything that Restore needs for encoding and for an exact resume. Its slices belong to the model and
	// are valid until the next Step.
	State() State
	// Restore sets the state to one returned by a model with the same settings.
	Restore(State) error
	// Codes returns the codes of the fitted images, n x Units(), in a new slice, or nil if the method does not store them
	// because Encode returns the same codes.
	Codes() []float32
}

// Images are the rows to which a model is fitted: *data.Images, or [Matrix].
type Images interface {
	Len() int
	Pixels() int
	// Batch writes the images with these indices to dst, one after the other.
	Batch(dst []float32, indices []int)
}

// Progress describes a fit after an iteration.
type Progress struct {
	Iteration int // number of completed iterations
	// Objective is the objective of the method, as a mean over images and pixels: the squared error, or the Kullback-Leibler
	// divergence of nmf with loss = "kl".
	Objective float64
	Done      bool
}

// State contains the parameters of a model and the progress of its fit. Numbers do not change in a round trip through JSON.
type State struct {
	Tensors map[string]Tensor
	Numbers map[string]float64
}

// Tensor is an array of values, row-major.
type Tensor struct {
	Shape  []int
	Values []float32
}

// Names of tensors that several methods save.
const (
	atomsName = "atoms" // tensor of the atoms, k x pixels
	biasName  = "bias"  // tensor of the bias, which is added to every decoded image: pixels
	codesName = "codes" // tensor of the codes of the fitted images, n x k
)

// Fit fits m to images from its current state, calls report (which may be nil) after every iteration, and returns the last
// progress. If ctx ends or report returns an error, Fit returns this error after a complete iteration or batch.
func Fit(ctx context.Context, m Model, images Images, report func(Progress) error) (Progress, error) {
	var last Progress
	if m == nil || images == nil || ctx == nil {
		return last, errors.New("baselines: fit: no model, no images or no context")
	}
	if err := m.Begin(ctx, images); err != nil {
		return last, err
	}
	for !m.Done() {
		p, err := m.Step(ctx)
		if err != nil {
			return last, err
		}
		if last = p; report == nil {
			continue
		}
		if err := report(p); err != nil {
			return last, err
		}
	}
	return last, nil
}

// Matrix contains images as floats in memory.
type Matrix struct {
	values []float32
	pixels int
}

// NewMatrix returns images with the given values, one image after the other. The slice is not copied.
func NewMatrix(values []float32, pixels int) (Matrix, error) {
	if pixels < 1 || len(values)%pixels != 0 {
		return Matrix{}, fmt.Errorf("baselines: got %d values, want whole images of %d pixels", len(values), pixels)
	}
	return Matrix{values, pixels}, nil
}

// Len implements [Images].
func (m Matrix) Len() int { return len(m.values) / max(1, m.pixels) }

// Pixels implements [Images].
func (m Matrix) Pixels() int { return m.pixels }

// Batch implements [Images].
func (m Matrix) Batch(dst []float32, indices []int) {
	for k, i := range indices {
		copy(dst[k*m.pixels:(k+1)*m.pixels], m.values[i*m.pixels:(i+1)*m.pixels])
	}
}

// load returns all images as floats, with NaN for missing entries. A Matrix is not copied.
func load(images Images) []float32 {
	if m, ok := images.(Matrix); ok {
		return m.values
	}
	images = holed(images)
	pixels := images.Pixels()
	all := make([]float32, images.Len()*pixels)
	forLanes(images.Len(), func(_, from, to int) {
		images.Batch(all[from*pixels:to*pixels], span(nil, from, to))
	})
	return all
}

// span returns the indices from, ..., to-1 in the given slice, which is extended if necessary.
func span(indices []int, from, to int) []int {
	indices = indices[:0]
	for i := from; i < to; i++ {
		indices = append(indices, i)
	}
	return indices
}

// accept checks the images that are passed to Begin.
func accept(images Images, pixels int) error {
	switch {
	case images.Pixels() != pixels:
		return fmt.Errorf("images: got %d pixels each, want %d as in the model", images.Pixels(), pixels)
	case images.Len() == 0:
		return fmt.Errorf("there are no images to fit")
	}
	return nil
}

// TakesSigned reports whether a method accepts images of this shape with negative values.
func TakesSigned(method Method, shape []int) bool {
	m, err := method.New(shape, 0)
	if r, ok := m.(*restarted); ok {
		m = r.Model
	}
	a, ok := m.(interface{ takesSigned() bool })
	return err != nil || !ok || a.takesSigned()
}

// ErrOtherImages is the error of Begin if the images differ from those of the restored fit.
var ErrOtherImages = errors.New("the images are not those that the saved fit began with")

// acceptValues returns an error for the first value that is not finite, or that is negative unless signed is true. It accepts
// NaN if holes is true.
func acceptValues(x []float32, pixels int, signed, holes bool) error {
	least, want := float32(0), "a number >= 0"
	if signed {
		least, want = -math.MaxFloat32, "a finite number"
	}
	for i, v := range x {
		if !(v >= least && v <= math.MaxFloat32) && !(holes && v != v) {
			return &data.Error{Problem: fmt.Sprintf("sample %d, value %d: got %v, want %s", i/pixels, i%pixels, v, want)}
		}
	}
	return nil
}

// tensor returns the named tensor, or an error if it does not have the given shape; a size of -1 matches any.
func (s State) tensor(name string, shape ...int) (Tensor, error) {
	t, ok := s.Tensors[name]
	if !ok {
		return t, fmt.Errorf("the state holds no tensor %q", name)
	}
	fits := slices.EqualFunc(t.Shape, shape, func(got, want int) bool { return got == want || want < 0 && got >= 0 })
	if !fits || len(t.Values) != volume.Of(t.Shape) {
		return t, fmt.Errorf("tensor %q: got shape %v and %d values, want shape %v", name, t.Shape, len(t.Values), shape)
	}
	return t, nil
}

// values returns a copy of the values of the named tensor, or an error if it does not have the given shape.
func (s State) values(name string, shape ...int) ([]float32, error) {
	t, err := s.tensor(name, shape...)
	if err != nil {
		return nil, err
	}
	return slices.Clone(t.Values), nil
}

// numbers sets each variable to the saved number with its name.
func (s State) numbers(into map[string]*float64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(into)) {
		v, ok := s.Numbers[name]
		if *into[name] = v; !ok {
			errs = append(errs, fmt.Errorf("the state holds no number %q", name))
		}
	}
	return errors.Join(errs...)
}

// algorithm is the part of a [Model] that differs between methods; its [base] adds the common part.
type algorithm interface {
	Model
	// begin takes images whose size and number the base has checked; see [Model.Begin].
	begin(images Images) error
	// step performs one iteration and returns the objective.
	step(ctx context.Context) (objective float64, err error)
	// encode returns the codes of images. It is called only if there are atoms.
	encode(images []float32) ([]float32, error)
	// save adds everything that restore needs to a state.
	save(State)
	restore(State) error
}

// base is the common part of all models. It decodes by atoms, plus a bias if the method has one, and counts iterations.
type base struct {
	own           algorithm // the model that embeds this base
	name          string    // name of the method
	shape         []int
	pixels, units int
	signed        bool                           // images may have negative values
	holes         bool                           // images may have missing entries (NaN)
	fits          func(images, pixels int) error // checks the settings
	iterations    int                            // maximum number of iterations
	tolerance     float64                        // the fit ends when an iteration lowers the objective by less than this fraction of it
	rises         bool                           // the objective may rise, which does not end the fit

	atoms []float32 // units x pixels
	bias  []float32 // bias, pixels; nil if there is none

	iteration int
	objective float64
	done      bool
}

// newBase returns the base of an unfitted model, or an error for settings that are invalid, in general or for images of this
// shape.
func newBase(name string, s settings, shape []int, iterations int, tolerance float64) (base, error) {
	b := base{name: name, shape: slices.Clone(shape), pixels: volume.Of(shape), units: s.Units(), fits: s.Fits, iterations: iterations, tolerance: tolerance}
	if h, ok := s.(Holed); ok {
		b.holes = h.CheckHoles() == nil
	}
	return b, b.wrap(b.check(s))
}

func (b *base) check(s settings) error {
	if c, ok := s.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if err := kernel.Err(); err != nil {
		return err
	}
	if len(b.shape) == 0 || slices.Min(b.shape) < 1 {
		return fmt.Errorf("images of shape %v have no pixels", b.shape)
	}
	if b.units < 1 {
		return fmt.Errorf("components: got %d, want > 0", b.units)
	}
	return b.fits(0, b.pixels)
}

// wrap adds the name of the method to an error.
func (b *base) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", b.name, err)
}

// Shape implements [metrics.Coder].
func (b *base) Shape() []int { return slices.Clone(b.shape) }

// Units implements [metrics.Coder].
func (b *base) Units() int { return b.units }

// Atoms implements [metrics.Coder].
func (b *base) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: b.Shape(), Count: b.units, Values: slices.Clone(b.atoms), Bias: slices.Clone(b.bias)}
}

// WithAtoms implements [metrics.Coder].
func (b *base) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(b.own, a) }

// Encode implements [metrics.Coder].
func (b *base) Encode(images []float32) ([]float32, error) {
	if b.atoms == nil {
		return nil, errUnfitted
	}
	if len(images)%b.pixels != 0 {
		return nil, fmt.Errorf("baselines: got %d values, want whole images of shape %v", len(images), b.shape)
	}
	codes, err := b.own.encode(images)
	return codes, b.wrap(err)
}

// Decode implements [metrics.Coder].
func (b *base) Decode(codes []float32) ([]float32, error) {
	if b.atoms == nil {
		return nil, errUnfitted
	}
	return decode(codes, b.atoms, b.bias, b.units, b.pixels)
}

// Codes implements [Model]: Encode returns the same codes.
func (b *base) Codes() []float32 { return nil }

// Begin implements [Model].
func (b *base) Begin(ctx context.Context, images Images) error {
	images = holed(images)
	err := accept(images, b.pixels)
	if err == nil {
		err = b.fits(images.Len(), b.pixels)
	}
	if err == nil {
		err = b.own.begin(images)
	}
	if err != nil {
		return b.wrap(err)
	}
	return ctx.Err()
}

// Step implements [Model].
func (b *base) Step(ctx context.Context) (Progress, error) {
	if err := ctx.Err(); err != nil {
		return Progress{}, err
	}
	objective, err := b.own.step(ctx)
	if err == nil && !finite(objective) {
		err = fmt.Errorf("iteration %d: %w", b.iteration+1, ErrDiverged)
	}
	if err != nil {
		return Progress{}, b.wrap(err)
	}
	fallen := b.objective - objective
	if b.rises {
		fallen = math.Abs(fallen)
	}
	b.iteration++
	b.done = b.iteration >= b.iterations || fallen <= b.tolerance*b.objective
	b.objective = objective
	return Progress{b.iteration, b.objective, b.done}, nil
}

// Done implements [Model].
func (b *base) Done() bool { return b.done }

// State implements [Model].
func (b *base) State() State {
	s := State{map[string]Tensor{}, map[string]float64{}}
	b.own.save(s)
	return s
}

// Restore implements [Model].
func (b *base) Restore(s State) error { return b.wrap(b.own.restore(s)) }

func (b *base) takesSigned() bool { return b.signed }

// acceptImages returns an error for images that the method does not accept.
func (b *base) acceptImages(x []float32) error { return acceptValues(x, b.pixels, b.signed, b.holes) }

// atom returns the pixels of atom j.
func (b *base) atom(j int) []float32 { return b.atoms[j*b.pixels : (j+1)*b.pixels] }

// save adds progress, atoms and bias to a state.
func (b *base) save(s State) {
	s.Numbers["iteration"], s.Numbers["objective"], s.Numbers["done"] = float64(b.iteration), b.objective, 0
	if b.done {
		s.Numbers["done"] = 1
	}
	if b.atoms != nil {
		s.Tensors[atomsName] = Tensor{[]int{b.units, b.pixels}, b.atoms}
	}
	if b.bias != nil {
		s.Tensors[biasName] = Tensor{[]int{b.pixels}, b.bias}
	}
}

// restore reads progress, atoms and, if there is one, bias from a state.
func (b *base) restore(s State) error {
	return errors.Join(b.restoreProgress(s), b.restoreAtoms(s))
}

func (b *base) restoreProgress(s State) error {
	var iteration, done float64
	err := s.numbers(map[string]*float64{"iteration": &iteration, "objective": &b.objective, "done": &done})
	b.iteration, b.done = int(iteration), done != 0
	return err
}

func (b *base) restoreAtoms(s State) (err error) {
	if b.atoms, err = s.values(atomsName, b.units, b.pixels); err != nil {
		return err
	}
	if _, ok := s.Tensors[biasName]; ok {
		b.bias, err = s.values(biasName, b.pixels)
	}
	return err
}

var errUnfitted = fmt.Errorf("baselines: the model has not been fitted")

// decode returns codes x atoms + bias.
func decode(codes, atoms, bias []float32, units, pixels int) ([]float32, error) {
	if len(codes)%units != 0 {
		return nil, fmt.Errorf("baselines: got %d values, want whole codes of %d values", len(codes), units)
	}
	n := len(codes) / units
	images := make([]float32, n*pixels)
	multiply(false, false, n, pixels, units, codes, atoms, images)
	for i := 0; i < n && bias != nil; i++ {
		row := images[i*pixels : (i+1)*pixels]
		for j, b := range bias {
			row[j] += b
		}
	}
	return images, nil
}

// replaced is a coder with replaced atoms: it encodes with the original atoms and decodes with the new ones.
type replaced struct {
	metrics.Coder
	atoms *metrics.Atoms
}

// replaceAtoms implements WithAtoms for every model.
func replaceAtoms(c metrics.Coder, a *metrics.Atoms) (metrics.Coder, error) {
	pixels := volume.Of(c.Shape())
	if a == nil || a.Count != c.Units() || len(a.Values) != a.Count*pixels || a.Bias != nil && len(a.Bias) != pixels {
		return nil, fmt.Errorf("baselines: replaced atoms: want %d images of shape %v", c.Units(), c.Shape())
	}
	return replaced{c, &metrics.Atoms{Shape: c.Shape(), Count: a.Count,
		Values: slices.Clone(a.Values), Bias: slices.Clone(a.Bias)}}, nil
}

// Atoms implements [metrics.Coder].
func (r replaced) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: slices.Clone(r.atoms.Shape), Count: r.atoms.Count,
		Values: slices.Clone(r.atoms.Values), Bias: slices.Clone(r.atoms.Bias)}
}

// Decode implements [metrics.Coder].
func (r replaced) Decode(codes []float32) ([]float32, error) {
	return decode(codes, r.atoms.Values, r.atoms.Bias, r.atoms.Count, len(r.atoms.Values)/r.atoms.Count)
}

// WithAtoms implements [metrics.Coder].
func (r replaced) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(r.Coder, a) }
