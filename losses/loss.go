// Package losses contains the terms of objectives. Each file holds one term: a symbolic Gorgonia expression with its
// formula, source and defaults.
//
// A new term is one new file with one call of Registry.Register. [Loss.Reads] declares what the term reads; Build gets it
// from [Values]. Gradients come from automatic differentiation only. The term's weight and the value that it is computed on
// belong to the declaration in models.toml, not to the term.
package losses

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/part"
)

// Loss is one term of the objective.
type Loss interface {
	// On is the default of the key `on`: the name of a value ("output", "code", a head), [Atoms], or a glob over parameter
	// paths for a term that reads parameters.
	On() string
	// Reads declares what the term is computed from. It depends only on the settings.
	Reads() Reads
	// Build returns the term, a scalar. It may use only those values of v that Reads declares.
	Build(v Values) (*gorgonia.Node, error)
}

// Registry holds every loss.
var Registry = part.New[Loss]("loss")

// The names of the values that a model may have in addition to its heads.
const (
	Code   = "code"   // the output of the encoder
	Output = "output" // the output of the decoder

	// Atoms is the value of `on` for a term with Reads.Atoms.
	Atoms = "atoms"
)

// Per is what a term is a mean or sum over. The laws of package laws verify it.
type Per int

const (
	// Image terms are means over the images: the contribution of an image does not depend on the other images.
	Image Per = iota
	// Means are functions of means over the batch, such as the mean activation of every unit or a mean over the labelled
	// images. Duplicating every image of a batch does not change the value.
	Means
	// Batch terms compare the images of a batch with each other. The order of the images does not matter.
	Batch
	// Parameter terms do not depend on the images.
	Parameter
)

// Reads is what a term is computed from.
type Reads struct {
	Per Per

	On     bool // the value that `on` names
	Unit   bool // that value must lie in [0,1]
	Views  bool // that value, and those of Values, are computed from the two views, not from the images: (2 batch, values)
	Images bool // the images as targets: the value that `on` names must have the size of an image
	Labels bool // the labels: the value that `on` names must have one unit for each class

	Values  []string // further values by name
	Teacher bool     // the values of the teacher

	Atoms    bool // the decoder, starting at its atoms: [Values.Dictionary]
	Jacobian bool // derivatives of the value that `on` names with respect to the images: [Values.Encoding]
}

// InParts reports whether a term on that value can be accumulated over micro-batches. This holds for means over the images
// and for functions of the codes only, because the codes of all images fit into memory.
func (r Reads) InParts(on string) bool {
	return r.Per == Image && !r.Views || r.Per == Parameter || r.Alone(on, Code)
}

// Alone reports whether a term on that value reads only these values and parameters.
func (r Reads) Alone(on string, values ...string) bool {
	if r.Images || r.Labels || r.Views || r.Teacher || r.Atoms || r.Jacobian || r.On && !slices.Contains(values, on) {
		return false
	}
	return !slices.ContainsFunc(r.Values, func(name string) bool { return !slices.Contains(values, name) })
}

// UnitsChecker is implemented by terms that are not defined for every number of units of the value that `on` names.
type UnitsChecker interface {
	// CheckUnits reports why the term is not defined for a value with that number of units.
	CheckUnits(units int) error
}

// ShapeChecker is implemented by terms that are not defined for images of every shape.
type ShapeChecker interface {
	// CheckShape reports why the term is not defined for images of that shape. The error is a part.KeyError if a key has an
	// invalid value.
	CheckShape(shape []int) error
}
