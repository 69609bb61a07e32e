// Package losses is the vocabulary of objectives: one file per term, each a symbolic Gorgonia expression with its
// formula, its source and its defaults.
//
// A new term is one new file with one call of Registry.Register. It says what it reads, by [Loss.Reads], and asks for it by
// name when it is built, from [Values]. Gradients come from automatic differentiation only. The weight that multiplies
// every term, and the value that it is taken on, belong to the declaration, not to the term.
package losses

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/part"
)

// Loss is one term of the objective.
type Loss interface {
	// On is the default of the key `on`: the name of a value ("output", "code", a head), [Atoms], or, of a term that reads
	// parameters, a glob over their paths.
	On() string
	// Reads says what the term is computed from. It depends on the settings alone.
	Reads() Reads
	// Build returns the term, a scalar. It may ask v for what Reads declares, and for nothing else.
	Build(v Values) (*gorgonia.Node, error)
}

// Registry holds every loss.
var Registry = part.New[Loss]("loss")

// The names of values that every model may have, beside its heads.
const (
	Code   = "code"   // what the encoder computes
	Output = "output" // what the decoder computes

	// Atoms is what a term with Reads.Atoms is taken on.
	Atoms = "atoms"
)

// Per says over what a term is taken. The laws of package laws hold a term to it.
type Per int

const (
	// Image terms are means over the images: what one image adds does not depend on the others.
	Image Per = iota
	// Means are functions of means over the batch, such as the mean activation of every unit or a mean over those
	// images whose label is known. A batch in which every image stands twice has the same value.
	Means
	// Batch terms compare the images of a batch with each other. The order of the images changes nothing.
	Batch
	// Parameter terms see no images.
	Parameter
)

// Reads is what a term is computed from.
type Reads struct {
	Per Per

	On     bool // the value that `on` names
	Unit   bool // that value must lie in [0,1]
	Views  bool // that value, and those of Values, are computed from the two views, not from the images: (2 batch, values)
	Images bool // the images, to compare with: the value that `on` names must be as large as one
	Labels bool // the labels: the value that `on` names must have one unit for each class

	Values  []string // further values by name
	Teacher bool     // the values of the teacher

	Atoms    bool // the decoder from its atoms on: [Values.Dictionary]
	Jacobian bool // derivatives of the value that `on` names with respect to the images: [Values.Encoding]
}

// InParts reports whether a term on that value can be computed over all images a few at a time: a mean over the images, or
// a function of all codes alone, which are small enough to be held together.
func (r Reads) InParts(on string) bool {
	return r.Per == Image && !r.Views || r.Per == Parameter || r.Alone(on, Code)
}

// Alone reports whether a term that is taken on that value reads nothing but these values and parameters.
func (r Reads) Alone(on string, values ...string) bool {
	if r.Images || r.Labels || r.Views || r.Teacher || r.Atoms || r.Jacobian || r.On && !slices.Contains(values, on) {
		return false
	}
	return !slices.ContainsFunc(r.Values, func(name string) bool { return !slices.Contains(values, name) })
}

// UnitsChecker is implemented by terms that are not defined for every number of units of the value that `on` names.
type UnitsChecker interface {
	// CheckUnits reports why the term cannot be taken on a value of that many units.
	CheckUnits(units int) error
}

// ShapeChecker is implemented by terms that are not defined for images of every shape.
type ShapeChecker interface {
	// CheckShape reports why the term cannot be taken with images of that shape, as a part.KeyError where the value of a
	// key is at fault.
	CheckShape(shape []int) error
}
