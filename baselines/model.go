package baselines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/internal/volume"
	"tessera/metrics"
)

// Method is the settings of a baseline, as config decodes them.
type Method interface {
	config.Baseline
	// New returns an unfitted model for images of that shape: (height, width) or (height, width, channels). Every
	// random choice of its fit comes from seed.
	New(shape []int, seed uint64) (Model, error)
	// MostIterations is the number of iterations of a fit that does not converge earlier.
	MostIterations() int
	// Biased reports whether a bias is added to every decoded image.
	Biased() bool
}

// Model is a baseline that can be fitted, saved and restored. It can encode images at any time. Its methods must not be
// called concurrently.
//
// [Fit] does all in one call. To resume an interrupted fit, call Restore and then Begin with the same images; to
// code images with a finished one, Restore alone is enough.
type Model interface {
	metrics.Coder
	// Begin takes the images to be fitted, which must not change afterwards, and makes the first atoms, or those that were
	// restored, ready for Step. Errors: a [part.KeyError] for a setting that does not fit the images, a [*data.Error] for
	// images that the method cannot take, and [ErrOtherImages] for other images than those of the restored fit.
	Begin(ctx context.Context, images Images) error
	// Step does one iteration. When ctx ends it returns ctx's error, and the model's state is one from which the fit can
	// resume.
	Step(ctx context.Context) (Progress, error)
	// Done reports whether the fit has ended: it has converged or used up its iterations.
	Done() bool
	// State returns everything that Restore needs for coding and for an exact resume. Its slices belong to the model and are
	// valid until the next Step.
	State() State
	// Restore takes over a state that a model with the same settings returned.
	Restore(State) error
	// Codes returns the codes of the fitted images, n x Units(), in a new slice, or nil if the method keeps none because
	// Encode returns the same codes.
	Codes() []float32
}

// Images are the rows that a model is fitted to: *data.Images, or [Matrix].
type Images interface {
	Len() int
	Pixels() int
	// Batch writes the images of those indices into dst, one after the other.
	Batch(dst []float32, indices []int)
}

// Progress is the progress of a fit after an iteration.
type Progress struct {
	Iteration int // iterations done
	// Objective is the objective of the method, as a mean over images and pixels: the squared error, or the Kullback-Leibler
	// divergence of nmf with loss = "kl".
	Objective float64
	Done      bool
}

// State is the parameters of a model and the progress of its fit. Numbers survive a round trip through JSON.
type State struct {
	Tensors map[string]Tensor
	Numbers map[string]float64
}

// Tensor is values of a shape, row-major.
type Tensor struct {
	Shape  []int
	Values []float32
}

// The names of the tensors that several methods save.
const (
	atomsName = "atoms" // k x pixels
	biasName  = "bias"  // pixels: what is added to every decoded image
	codesName = "codes" // n x k, of the fitted images
)

// Fit fits m to images from its current state, calls report (which may be nil) after every iteration, and returns the last
// progress. It ends early with the error of ctx or of report, after a whole number of iterations or batches.
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

// Matrix is images that are floats in memory.
type Matrix struct {
	values []float32
	pixels int
}

// NewMatrix returns the images whose pixels, image after image, are values. The slice is kept, not copied.
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

// load returns all images as floats, without a copy where they are a Matrix.
func load(images Images) []float32 {
	if m, ok := images.(Matrix); ok {
		return m.values
	}
	pixels := images.Pixels()
	all := make([]float32, images.Len()*pixels)
	forLanes(images.Len(), func(_, from, to int) {
		images.Batch(all[from*pixels:to*pixels], span(nil, from, to))
	})
	return all
}

// span returns from, ..., to-1 in the given slice, grown where it is too short.
func span(indices []int, from, to int) []int {
	indices = indices[:0]
	for i := from; i < to; i++ {
		indices = append(indices, i)
	}
	return indices
}

// accept checks the images of Begin.
func accept(images Images, pixels int) error {
	switch {
	case images.Pixels() != pixels:
		return fmt.Errorf("images: got %d pixels each, want %d as in the model", images.Pixels(), pixels)
	case images.Len() == 0:
		return fmt.Errorf("there are no images to fit")
	}
	return nil
}

// TakesSigned reports whether a method fits images of that shape that have negative values.
func TakesSigned(method Method, shape []int) bool {
	m, err := method.New(shape, 0)
	if r, ok := m.(*restarted); ok {
		m = r.Model
	}
	f, ok := m.(interface{ takesSigned() bool })
	return err != nil || !ok || f.takesSigned()
}

// ErrOtherImages means that a restored fit cannot resume with these images.
var ErrOtherImages = errors.New("the images are not those that the saved fit began with")

// acceptNonNegative refuses negative and non-finite values.
func acceptNonNegative(x []float32, pixels int) error {
	return acceptValues(x, pixels, 0, "a number >= 0")
}

// acceptFinite refuses NaN and infinities.
func acceptFinite(x []float32, pixels int) error {
	return acceptValues(x, pixels, -math.MaxFloat32, "a finite number")
}

func acceptValues(x []float32, pixels int, least float32, want string) error {
	for i, v := range x {
		if !(v >= least && v <= math.MaxFloat32) {
			return &data.Error{Problem: fmt.Sprintf("sample %d, value %d: got %v, want %s", i/pixels, i%pixels, v, want)}
		}
	}
	return nil
}

// tensor returns the named tensor if it has that shape; a size of -1 matches any.
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

// number returns the named number.
func (s State) number(name string) (float64, error) {
	v, ok := s.Numbers[name]
	if !ok {
		return 0, fmt.Errorf("the state holds no number %q", name)
	}
	return v, nil
}
