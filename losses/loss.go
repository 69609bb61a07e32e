// Package losses contains the terms of objectives. A [Loss] is one file with its formula, source and defaults; it builds an
// expression. A [Weight] is the factor of a term: a constant or a schedule.
//
// A new term needs only a new file with one call of Registry.Register. [Loss.Reads] declares its inputs; [Loss.Build] gets them
// from [Values]. Gradients come from automatic differentiation. The weight of a term and the value that it is computed on
// belong to the declaration in models.toml, not to the term.
package losses

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/ops"
	"tessera/part"
)

// Loss is one term of the objective.
type Loss interface {
	// On is the default of the key `on`: the name of a value ("output", "code", a head), [Atoms], or a glob over parameter
	// paths for a term that reads parameters.
	On() string
	// Reads declares the inputs of the term. They depend only on the settings.
	Reads() Reads
	// Build returns the term, a scalar. It may use only the values of v that Reads declares.
	Build(v Values) (*gorgonia.Node, error)
}

// Registry contains every loss.
var Registry = part.New[Loss]("loss")

// The names of the values that a model may have in addition to its heads.
const (
	Code   = "code"   // the output of the encoder
	Output = "output" // the output of the decoder

	// Atoms is the value of `on` for a term with Reads.Atoms.
	Atoms = "atoms"
)

// The columns that every data set may have. They are also values of every model.
const (
	Images = "images" // the images that are encoded
	Labels = "labels" // whole numbers
)

// Per classifies how a term depends on the images of a batch. The tests of package laws verify the declaration.
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

// Reads declares the inputs of a term.
type Reads struct {
	Per Per

	On    bool // the value that `on` names
	Unit  bool // that value must lie in [0,1]
	Views bool // that value and Values are computed from the two views instead of the images: (2 batch, values)

	// Against is the default of the key `against`: the column or value that the term compares with the value that `on` names, which
	// must have its size. It is [Images], [Labels], or "" for a term that compares with nothing.
	Against string
	Classes bool // what it compares with are classes: one unit for each of them, see [Values.Against]
	Counts  bool // the term is a mean that takes the keys `mask` and `sample_weight`: see [MeanOf]

	Values []string // further values by name
	// Published are values that the layer publishes whose output `on` names, by their names there: [Values.Published].
	Published []string
	Teacher   bool // the values of the teacher

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
	if r.Against != "" || r.Views || r.Teacher || r.Atoms || r.Jacobian || len(r.Published) > 0 || r.On && !slices.Contains(values, on) {
		return false
	}
	return !slices.ContainsFunc(r.Values, func(name string) bool { return !slices.Contains(values, name) })
}

// Validates reports whether a term can be measured on other images than those of a training step: it neither compares the images
// of a batch with each other nor reads views or a teacher, which exist in training only.
func (r Reads) Validates() bool { return r.Per != Batch && !r.Views && !r.Teacher }

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

// Values provides the inputs of a term. All values have the batch as their first axis. Methods return an error for values that
// the model does not have and for values that the term does not declare in [Reads].
type Values interface {
	// On returns the value that `on` names, (batch, units), or (2 batch, units) if it is computed from the views.
	On() (*gorgonia.Node, error)
	// Value returns a value by its name: "code", "output" or a head, (batch, units).
	Value(name string) (*gorgonia.Node, error)
	// Published returns a value that the layer publishes whose output `on` names, (batch, units). With on = "encoder.2" it is
	// encoder.2.NAME; the layer of "code", "output" or a head is the last one of that stack.
	Published(name string) (*gorgonia.Node, error)
	// Teacher returns the value that `on` names as the teacher computes it. No gradient flows through it.
	Teacher() (*gorgonia.Node, error)
	// Against returns what the term compares with, (batch, values): the column or value that `against` names. Images are the clean
	// ones if the encoder gets distorted ones. Classes are one-hot, (batch, classes); the row of a sample without a class is 0.
	Against() (*gorgonia.Node, error)
	// Shape returns the shape of what the term compares with, for one sample: (height, width), (height, width, channels) or (values);
	// for a term on the atoms that of an image.
	Shape() ([]int, error)
	// Counts returns what the keys `mask` and `sample_weight` name.
	Counts() (Counts, error)
	// Weights returns the parameters that match the glob `on`, at least one.
	Weights() ([]*gorgonia.Node, error)
	// Dictionary returns the decoder, starting at its atoms.
	Dictionary() (*Dictionary, error)
	// Encoding returns the computation of the value that `on` names from the images.
	Encoding() (*Encoding, error)
}

// Encoding describes the encoder to a term with Reads.Jacobian. Derivatives must be computed by [ops.Gradient], because
// training differentiates them again.
type Encoding struct {
	Images *gorgonia.Node // the encoder's input, with the batch as first axis
	Code   *gorgonia.Node // the value that `on` names, (batch, units)

	// Noise returns a new input of that shape, with the batch as first axis. s draws its values at every training step. A
	// full-batch objective must not change between evaluations: its values are drawn once for each image.
	Noise func(s ops.Sampler, shape ...int) *gorgonia.Node
}

// Dictionary describes the decoder to a term with Reads.Atoms. The atoms are the rows of the weight of the decoder's last
// layer with weights, if they have the size of an image.
type Dictionary struct {
	Images *gorgonia.Node // the images to reconstruct, (batch, pixels)
	Shape  []int          // of one image: (height, width) or (height, width, channels)
	Code   *gorgonia.Node // coefficients of the atoms, (batch, atoms): the code if only one decoder layer has weights
	Atoms  *gorgonia.Node // (atoms, pixels)

	// Decode returns the output, (batch, pixels), for other atoms with the same code, bias and later layers.
	Decode func(atoms *gorgonia.Node) (*gorgonia.Node, error)
}

// Build builds the term l on the named value from v. It returns an error if the term requests an input that it does not declare
// in [Reads], or returns no node.
func Build(l Loss, on string, v Values) (*gorgonia.Node, error) {
	n, err := l.Build(&declared{v, l.Reads(), on})
	if err == nil && n == nil {
		err = errors.New("its Build returns no node")
	}
	return n, err
}

// declared restricts Values to the declared inputs of a term.
type declared struct {
	values Values
	reads  Reads
	on     string
}

// undeclared returns the error for a term that requests an undeclared input.
func undeclared(what string) error { return fmt.Errorf("it does not declare that it reads %s", what) }

// On implements [Values].
func (d *declared) On() (*gorgonia.Node, error) {
	if !d.reads.On {
		return nil, undeclared("the value that `on` names")
	}
	return d.values.On()
}

// Value implements [Values].
func (d *declared) Value(name string) (*gorgonia.Node, error) {
	if !slices.Contains(d.reads.Values, name) && !(d.reads.On && name == d.on) {
		return nil, undeclared(fmt.Sprintf("the value %q", name))
	}
	return d.values.Value(name)
}

// Published implements [Values].
func (d *declared) Published(name string) (*gorgonia.Node, error) {
	if !slices.Contains(d.reads.Published, name) {
		return nil, undeclared(fmt.Sprintf("the published value %q", name))
	}
	return d.values.Published(name)
}

// Teacher implements [Values].
func (d *declared) Teacher() (*gorgonia.Node, error) {
	if !d.reads.Teacher {
		return nil, undeclared("the teacher")
	}
	return d.values.Teacher()
}

// Against implements [Values].
func (d *declared) Against() (*gorgonia.Node, error) {
	if d.reads.Against == "" {
		return nil, undeclared("what `against` names")
	}
	return d.values.Against()
}

// Shape implements [Values].
func (d *declared) Shape() ([]int, error) {
	if d.reads.Against == "" && !d.reads.Atoms {
		return nil, undeclared("what `against` names")
	}
	return d.values.Shape()
}

// Counts implements [Values].
func (d *declared) Counts() (Counts, error) {
	if !d.reads.Counts {
		return Counts{}, undeclared("`mask` and `sample_weight`")
	}
	return d.values.Counts()
}

// Weights implements [Values].
func (d *declared) Weights() ([]*gorgonia.Node, error) {
	if d.reads.Per != Parameter {
		return nil, undeclared("parameters, and no images")
	}
	return d.values.Weights()
}

// Dictionary implements [Values].
func (d *declared) Dictionary() (*Dictionary, error) {
	if !d.reads.Atoms {
		return nil, undeclared("the atoms")
	}
	return d.values.Dictionary()
}

// Encoding implements [Values].
func (d *declared) Encoding() (*Encoding, error) {
	if !d.reads.Jacobian {
		return nil, undeclared("derivatives with respect to the images")
	}
	return d.values.Encoding()
}

// onOutput is embedded by the terms that compare the output with the images or with another column.
type onOutput struct{}

// On implements [Loss].
func (onOutput) On() string { return Output }

// Reads implements [Loss].
func (onOutput) Reads() Reads { return Reads{On: true, Against: Images} }

// meanOnOutput is embedded by those that are means over entries and images.
type meanOnOutput struct{ onOutput }

// Reads implements [Loss].
func (meanOnOutput) Reads() Reads { return Reads{On: true, Against: Images, Counts: true} }

// onCode is embedded by penalties of the code that are means over the images.
type onCode struct{}

// On implements [Loss].
func (onCode) On() string { return Code }

// Reads implements [Loss].
func (onCode) Reads() Reads { return Reads{On: true} }

// meanActivation is embedded by the penalties of the mean activations of the units over the batch.
type meanActivation struct{ onCode }

// Reads implements [Loss].
func (meanActivation) Reads() Reads { return Reads{Per: Means, On: true} }

// Targeted is embedded by the penalties for the distance of each unit's mean activation over the batch, t_j, from a target p.
// They are sums over the units, so the gradient of a unit does not depend on the number of units.
type Targeted struct {
	meanActivation
	Target float64 `toml:"target" doc:"p, the target mean activation of every unit"`
}

// fromTarget returns p - t, with one value per unit.
func (l Targeted) fromTarget(c *ops.Chain, v Values) *gorgonia.Node {
	return c.From(l.Target, c.Mean(c.Do("on", v.On), 0))
}

// onAtoms is embedded by the penalties of the atoms.
type onAtoms struct{}

// On implements [Loss].
func (onAtoms) On() string { return Atoms }

// Reads implements [Loss].
func (onAtoms) Reads() Reads { return Reads{Atoms: true} }

// onWeights is embedded by the penalties of parameters.
type onWeights struct{}

// On implements [Loss].
func (onWeights) On() string { return "decoder.*.weight" }

// Reads implements [Loss].
func (onWeights) Reads() Reads { return Reads{Per: Parameter} }

// overWeights sums a scalar over the parameters that match `on`.
func overWeights(v Values, one func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node) (sum *gorgonia.Node, err error) {
	weights, err := v.Weights()
	var c ops.Chain
	for _, w := range weights {
		if term := one(&c, w); sum == nil {
			sum = term
		} else {
			sum = c.Add(sum, term)
		}
	}
	return sum, errors.Join(err, c.Err())
}
