// Package metrics measures coders: reconstruction error, sparsity, max-approximation, classification by codes, overlap of atoms.
//
// [Evaluate] computes a [Selection] of metrics of a [Coder] on a [Sample] and returns a [Result]. A [Metric] is one file with its
// formula, its source and one call of Registry.Register. The package does not depend on how a coder was trained.
package metrics

import (
	"fmt"
	"slices"

	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/volume"
)

// Coder encodes images and decodes codes with a dictionary of atoms. Auto-encoders, NMF, PCA and k-means are coders.
// All slices are row-major: n images, or n codes of Units() values each. Results belong to the caller: a later call of this
// coder, or of one made by WithAtoms, must not change them. Metrics call a coder from one goroutine at a time.
type Coder interface {
	// Shape is the shape of one image, (height, width) or (height, width, channels).
	Shape() []int
	// Units is the length of a code.
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

// Atoms is the dictionary of a decoder's last linear map.
type Atoms struct {
	Shape  []int     // of one image
	Count  int       // number of atoms: rows of Values
	Values []float32 // Count x pixels, row-major
	Bias   []float32 // pixels; nil for none

	// Indirect is the reason why the values of a code are not the weights of a sum of these atoms, "" if they are.
	Indirect string
}

// Apply returns the atoms after a flat morphological operator, atom by atom. The bias stays as it is: max-approximation
// operates on atoms only, unless it says otherwise.
func (a *Atoms) Apply(m Morphology) (*Atoms, error) {
	m = m.orDefault()
	values, err := morph.ApplyBy(m.Operator, m.Element, m.Radius, a.Values, a.Shape)
	if err != nil {
		return nil, fmt.Errorf("metrics: atoms: %w", err)
	}
	return &Atoms{Shape: a.Shape, Count: a.Count, Values: values, Bias: a.Bias}, nil
}

// Pixels returns the number of values of one atom.
func (a *Atoms) Pixels() int { return volume.Of(a.Shape) }

// check reports atoms whose slices do not fit their shape.
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

// OutputName is the name of the decoder's value.
const OutputName = "output"

// ValueCoder is a [Coder] of a model of named values: one that has heads, or no decoder.
type ValueCoder interface {
	Coder
	// Values lists the values that the model computes: "code", "output" where it has a decoder, and its heads.
	Values() []string
	// Value returns the value of that name of n = len(images)/pixels images, row-major.
	Value(name string, images []float32) ([]float32, error)
	// ClassHeads lists the heads that a loss compares with labels: one logit per class, the class being its index.
	ClassHeads() []string
}

// skipping is a [Coder] whose decoder may read more than the code, such as a layer of the encoder or a column.
type skipping interface {
	ValueCoder
	// Decodes returns an error if the output cannot be computed from the code alone.
	Decodes() error
	// Columns describes the columns that a value is computed from.
	Columns(value string) []data.Column
}

// decodes reports whether the coder computes images from codes alone.
func decodes(c Coder) bool {
	s, ok := c.(skipping)
	return !ok || s.Decodes() == nil
}

// hasOutput reports whether the coder reconstructs images, from codes or from the images themselves.
func hasOutput(c Coder) bool {
	v, ok := c.(ValueCoder)
	if !ok {
		return true
	}
	if !slices.Contains(v.Values(), OutputName) {
		return false
	}
	return decodes(c) || !slices.ContainsFunc(c.(skipping).Columns(OutputName), func(column data.Column) bool { return column.Name != "images" })
}

// Decodes reports whether a coder reconstructs images, and whether it does so from codes alone.
func Decodes(c Coder) (images, fromCodes bool) {
	images = hasOutput(c)
	return images, images && decodes(c)
}

// Reconstruct encodes and decodes images, also by a decoder that reads more than the code.
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

// outputs reconstructs images: from their codes, unless the decoder reads more than these.
func outputs(c Coder, images, codes []float32) ([]float32, error) {
	if decodes(c) {
		return decode(c, codes)
	}
	values, err := c.(ValueCoder).Value(OutputName, images)
	return checked(OutputName, values, len(images), err)
}

// classHeads lists the heads of a coder that give logits of classes.
func classHeads(c Coder) []string {
	if v, ok := c.(ValueCoder); ok {
		return v.ClassHeads()
	}
	return nil
}

// headValue is coder.Value of n images with its error and the length of its result checked.
func headValue(coder Coder, head string, images []float32, n int) ([]float32, error) {
	logits, err := coder.(ValueCoder).Value(head, images)
	if err != nil {
		return nil, fmt.Errorf("metrics: %s: %w", head, err)
	}
	if len(logits) == 0 || len(logits)%n != 0 {
		return nil, fmt.Errorf("metrics: %s: got %d values of %d images, want as many of each", head, len(logits), n)
	}
	return logits, nil
}
