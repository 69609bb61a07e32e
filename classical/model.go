// Package classical contains the methods that are not trained by gradients through a graph: principal components, k-means and
// non-negative matrix factorisations. A [Method] is the declaration, a [Model] its fit, and [Fit] runs it. Every model is a
// [metrics.Coder] from its first iteration on, so all metrics and figures of auto-encoders apply.
//
// A method is one file: a struct whose tagged fields are the keys of its table in models.toml, registered in
// [Registry], and an unexported [Algorithm] that fits it. X are n images of p pixels in rows, H their codes (n x k),
// W the atoms (k x p), and X is approximated by H W (plus the mean image in pca).
//
// A fit depends only on its seed and its images, to the bit: work is divided by size, never by the number of processors. A
// fit that is interrupted, saved and restored gives the same bytes as an uninterrupted one.
package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/data"
	"tessera/internal/fit"
	"tessera/internal/volume"
	"tessera/metrics"
)

var _ Images = (*Matrix)(nil)

// Method contains the settings of a baseline. It may have a method Check() error, which returns a [part.KeyError] for settings
// that exclude each other.
type Method interface {
	// Describe returns the properties of a fit with these settings.
	Describe() Fitting
	// New returns an unfitted model for images of the given shape, (height, width) or (height, width, channels). Every random
	// choice of its fit is determined by seed. See [NewModel].
	New(shape []int, seed uint64) (Model, error)
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
		return last, errors.New("classical: fit: no model, no samples or no context")
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
		return Matrix{}, fmt.Errorf("classical: got %d values, want whole samples of %d pixels", len(values), pixels)
	}
	return Matrix{values, pixels}, nil
}

func (m Matrix) Len() int    { return len(m.values) / max(1, m.pixels) }
func (m Matrix) Pixels() int { return m.pixels }

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
	fit.ForLanes(images.Len(), func(_, from, to int) {
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

// ErrOtherImages is the error of Begin if the images differ from those of the restored fit.
var ErrOtherImages = errors.New("the samples are not those that the saved fit began with")

// acceptValues returns an error for the first value that is not finite, or that is negative unless signed is true. It accepts
// NaN if holes is true.
func acceptValues(x []float32, pixels int, signed, holes bool) error {
	return acceptFrom(0, x, pixels, signed, holes)
}

// acceptFrom is acceptValues for rows from a number on.
func acceptFrom(first int, x []float32, pixels int, signed, holes bool) error {
	least, want := float32(0), "a number >= 0"
	if signed {
		least, want = -math.MaxFloat32, "a finite number"
	}
	for i, v := range x {
		if !(v >= least && v <= math.MaxFloat32) && !(holes && v != v) {
			return &data.Error{Problem: fmt.Sprintf("sample %d, value %d: got %v, want %s", first+i/pixels, i%pixels, v, want)}
		}
	}
	return nil
}

var errUnfitted = errors.New("classical: the model has not been fitted")

// decode returns codes x atoms + bias.
func decode(codes, atoms, bias []float32, units, pixels int) ([]float32, error) {
	if len(codes)%units != 0 {
		return nil, fmt.Errorf("classical: got %d values, want whole codes of %d values", len(codes), units)
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
		return nil, fmt.Errorf("classical: replaced atoms: want %d samples of shape %v", c.Units(), c.Shape())
	}
	return replaced{c, &metrics.Atoms{Shape: c.Shape(), Count: a.Count,
		Values: slices.Clone(a.Values), Bias: slices.Clone(a.Bias)}}, nil
}

func (r replaced) Atoms() *metrics.Atoms {
	return &metrics.Atoms{Shape: slices.Clone(r.atoms.Shape), Count: r.atoms.Count,
		Values: slices.Clone(r.atoms.Values), Bias: slices.Clone(r.atoms.Bias)}
}

func (r replaced) Decode(codes []float32) ([]float32, error) {
	return decode(codes, r.atoms.Values, r.atoms.Bias, r.atoms.Count, len(r.atoms.Values)/r.atoms.Count)
}

func (r replaced) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(r.Coder, a) }
