// Package metrics evaluates coders: reconstruction error, sparsity, max-approximation, classification by codes, overlap of
// atoms.
//
// [Evaluate] computes a [Selection] of metrics of a [Coder] on a [Sample] and returns a [Result]. A [Metric] is one file with its
// formula, its source and one call of Registry.Register. The package does not depend on how a coder was trained.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/volume"
)

// Coder encodes images and decodes codes with a dictionary of atoms. Auto-encoders, NMF, PCA and k-means are coders. All
// slices are row-major: n images, or n codes of Units() values each. The caller owns the results: later calls of this coder,
// or of a coder made by WithAtoms, must not change them. Metrics call a coder from one goroutine at a time.
type Coder interface {
	// Shape returns the shape of one image, (height, width) or (height, width, channels).
	Shape() []int
	// Units returns the length of a code.
	Units() int
	// Encode returns the codes of n = len(images)/pixels images.
	Encode(images []float32) (codes []float32, err error)
	// Decode returns the images of n = len(codes)/Units() codes.
	Decode(codes []float32) (images []float32, err error)
	// Atoms returns a copy of the dictionary, or nil if the decoder has none (its last layer with weights is not dense).
	Atoms() *Atoms
	// WithAtoms returns the same coder with another dictionary of the same shape. The rest of the decoder, such as its last
	// activation, stays the same. If the new coder is an io.Closer, the caller closes it.
	WithAtoms(*Atoms) (Coder, error)
}

// Sampler is a model of which images can be drawn: a density, or a generator.
type Sampler interface {
	// Draw returns n images, row-major, drawn at random by the seed. Image i depends only on the seed and i. The error of a
	// coder whose settings define no distribution is [ErrNoSampler]; once ctx is done it is the error of ctx.
	Draw(ctx context.Context, n int, seed uint64) (images []float32, err error)
}

// Stepwise is a model that computes new images in several steps.
type Stepwise interface {
	// Stepped returns the model with another number of steps and another share eta, in [0,1], of fresh noise in a step. 0 steps and
	// a negative eta stand for the declared ones.
	Stepped(steps int, eta float64) (Sampler, error)
}

// Conditional is a model whose images are also computed from columns.
type Conditional interface {
	// Given returns the distribution of the images whose columns have the given values, by the names of the columns. It is [Stepwise] if the
	// model is. The error for a column that is unknown or has other values is [ErrGiven]; Draw has it if no image depends on a column.
	Given(columns map[string][]float32) (Sampler, error)
}

// ErrNoSampler is the error of a [Sampler] that defines no distribution of images.
var ErrNoSampler = errors.New("the model is no distribution of samples")

// ErrGiven is the error of a [Conditional] that cannot take the given values of columns.
var ErrGiven = errors.New("the columns cannot be given")

// ErrNoSteps is the error of a [Stepwise] whose images are computed at once.
var ErrNoSteps = errors.New("its samples are not drawn in steps")

// Mixture is a mixture of distributions. A code is the probabilities of the components given the image.
type Mixture interface {
	Components() []Component // nil for a model that is no mixture
}

// Component is one distribution of a mixture.
type Component struct {
	Weight     float64   // its share of the images
	Mean       []float64 // one number per value of an image
	Covariance []float64 // of a normal distribution, row-major; nil for others
}

// As returns c, or the coder that c wraps, as a T; ok is false if neither is one.
func As[T any](c Coder) (is T, ok bool) {
	for {
		if is, ok = c.(T); ok {
			return is, true
		}
		wrapper, wraps := c.(interface{ Unwrap() Coder })
		if !wraps {
			return is, false
		}
		c = wrapper.Unwrap()
	}
}

// Atoms is the dictionary of a decoder's last linear map.
type Atoms struct {
	Shape  []int     // shape of one image
	Count  int       // number of atoms: rows of Values
	Values []float32 // Count x pixels, row-major
	Bias   []float32 // pixels; nil for none

	// Indirect is the reason why reconstructions are not sums of the atoms weighted by the code, "" if they are.
	Indirect string
}

// Apply applies a flat morphological operator to each atom and returns the results. The bias does not change:
// max-approximation operates on atoms only, by default.
func (a *Atoms) Apply(m Morphology) (*Atoms, error) {
	m = m.orDefault()
	values, err := morph.Apply(m.Operator, m.Element, m.Radius, a.Values, a.Shape)
	if err != nil {
		return nil, fmt.Errorf("metrics: atoms: %w", err)
	}
	return &Atoms{Shape: a.Shape, Count: a.Count, Values: values, Bias: a.Bias}, nil
}

// Pixels returns the number of values of one atom.
func (a *Atoms) Pixels() int { return volume.Of(a.Shape) }

// check returns an error if the lengths of the slices do not match the shape.
func (a *Atoms) check() error {
	pixels := a.Pixels()
	if len(a.Values) != a.Count*pixels {
		return fmt.Errorf("metrics: %d atoms of shape %v have %d values", a.Count, a.Shape, len(a.Values))
	}
	if a.Bias != nil && len(a.Bias) != pixels {
		return fmt.Errorf("metrics: the bias of atoms of shape %v has %d values", a.Shape, len(a.Bias))
	}
	return nil
}

// Names of the values of the encoder and of the decoder.
const (
	CodeName   = "code"
	OutputName = "output"
)

// ValueCoder is a [Coder] for a model with named values, which may have heads or lack a decoder.
type ValueCoder interface {
	Coder
	// Values lists the values that the model computes: "code", "output" if it has a decoder, and its heads.
	Values() []string
	// Value returns the named value for n = len(images)/pixels images, row-major.
	Value(name string, images []float32) ([]float32, error)
	// ClassHeads lists the heads that a loss compares with classes. Such a head has one logit per class; the index of a logit
	// is its class.
	ClassHeads() []string
}

// ClassColumner is a [ValueCoder] whose heads may predict the classes of any column.
type ClassColumner interface {
	ValueCoder
	// ClassColumn returns the column that a head predicts: "labels" or another column of classes.
	ClassColumn(head string) string
}

// skipping is a [Coder] whose decoder may read other values besides the code, such as a layer of the encoder or a column.
type skipping interface {
	ValueCoder
	// Decodes returns an error if the output cannot be computed from the code alone.
	Decodes() error
	// Columns returns descriptions of the columns from which a value is computed.
	Columns(value string) []data.Column
}

// decodes reports whether the coder computes images from codes alone.
func decodes(c Coder) bool {
	s, ok := c.(skipping)
	return !ok || s.Decodes() == nil
}

// hasOutput reports whether the coder can reconstruct images, given the columns: from codes, or from the images and the
// columns.
func hasOutput(c Coder, columns map[string][]float32) bool { return lacksOutput(c, columns) == "" }

// lacksOutput returns the reason why a coder cannot reconstruct images, "" if it can.
func lacksOutput(c Coder, columns map[string][]float32) string {
	v, named := c.(ValueCoder)
	if named && !slices.Contains(v.Values(), OutputName) {
		return "the model has no decoder"
	}
	if r, ok := As[interface{ Reconstructs() error }](c); ok {
		if err := r.Reconstructs(); err != nil {
			return err.Error()
		}
	}
	if !named {
		return ""
	}
	if name := lackedColumn(c, OutputName, columns); name != "" {
		return fmt.Sprintf("the output is computed from the column %q too", name)
	}
	return ""
}

// lacksAtoms returns the reason why the output of a coder is not computed from its atoms and codes alone, "" if it is.
func lacksAtoms(c Coder) string {
	s, ok := c.(skipping)
	switch {
	case !ok:
		return ""
	case !slices.Contains(s.Values(), OutputName):
		return "the model has no decoder"
	}
	if err := s.Decodes(); err != nil {
		return err.Error()
	}
	return ""
}

// readsColumns reports whether a value depends on columns other than images and the columns in given.
func readsColumns(c Coder, value string, given map[string][]float32) bool {
	return lackedColumn(c, value, given) != ""
}

// lackedColumn returns the first column that a value depends on and that is not in given, "" if there is none. Images are
// always available.
func lackedColumn(c Coder, value string, given map[string][]float32) string {
	s, ok := c.(skipping)
	if !ok {
		return ""
	}
	for _, column := range s.Columns(value) {
		if column.Name != data.ImagesColumn && given[column.Name] == nil {
			return column.Name
		}
	}
	return ""
}

// Decodes reports whether a coder reconstructs images, and whether it does so from codes alone.
func Decodes(c Coder) (images, fromCodes bool) {
	images = hasOutput(c, nil)
	return images, images && decodes(c)
}

// Reconstruct encodes and decodes images. It also works for a decoder that reads other values besides the code.
func Reconstruct(c Coder, images []float32) ([]float32, error) {
	var codes []float32
	if decodes(c) {
		var err error
		if codes, err = encode(c, images); err != nil {
			return nil, err
		}
	}
	return outputs(c, images, codes)
}

// outputs reconstructs images from their codes, or from the images if the decoder reads other values besides the code.
func outputs(c Coder, images, codes []float32) ([]float32, error) {
	if decodes(c) {
		return decode(c, codes)
	}
	values, err := c.(ValueCoder).Value(OutputName, images)
	return checked(OutputName, values, len(images), err)
}

// classHeads returns the heads of a coder that have class logits, with the classes of the samples.
func classHeads(c Coder, s *Sample) (heads []Head) {
	v, ok := c.(ValueCoder)
	if !ok {
		return nil
	}
	for _, name := range v.ClassHeads() {
		h := Head{Name: name, Labels: s.Labels, Classes: s.Names[data.LabelsColumn]}
		if of, ok := c.(ClassColumner); ok && of.ClassColumn(name) != data.LabelsColumn {
			h.Labels, h.Classes = nil, s.Names[of.ClassColumn(name)]
			for _, class := range s.Columns[of.ClassColumn(name)] {
				h.Labels = append(h.Labels, int(class))
			}
		}
		heads = append(heads, h)
	}
	return heads
}

// headValue computes a head for the n images of a batch. It checks the length of the result.
func headValue(b *Batch, head string, n int) (logits []float32, err error) {
	if readsColumns(b.coder, head, nil) {
		logits, err = b.Value(head)
	} else {
		logits, err = b.coder.(ValueCoder).Value(head, b.Images)
	}
	if err != nil {
		return nil, fmt.Errorf("metrics: %s: %w", head, err)
	}
	if len(logits) == 0 || len(logits)%n != 0 {
		return nil, fmt.Errorf("metrics: %s: got %d values of %d samples, want as many of each", head, len(logits), n)
	}
	return logits, nil
}
