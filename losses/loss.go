// Package losses contains the terms of objectives and their weights. A [Loss] is one file with its formula, source and
// defaults; it builds an expression. A [Weight] is the factor of a term: a constant or a schedule.
//
// A new term needs only a new file with one call of Registry.Register. [Loss.Reads] declares its inputs; [Loss.Build] gets
// them from [Values]. Gradients come from automatic differentiation. The weight of a term and the value that it reads are set
// in models.toml, not by the term.
package losses

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/panics"
)

// Loss is one term of the objective.
type Loss interface {
	// On returns the default of the key `on`: the name of a value ("output", "code", a head), [Atoms], or a glob over
	// parameter paths for a term that reads parameters.
	On() string
	// Reads declares the inputs of the term. They depend only on the settings.
	Reads() Reads
	// Build returns the term, a scalar. It may use only the values of v that Reads declares.
	Build(v Values) (*gorgonia.Node, error)
}

// Registry contains every loss.
var Registry = part.New[Loss]("loss")

// Names of the values that a model may have in addition to its heads.
const (
	Code   = "code"   // the output of the encoder
	Output = "output" // the output of the decoder

	// Atoms is the value of `on` for a term with Reads.Atoms.
	Atoms = "atoms"
)

// Names of the columns that every data set may have. Terms can also read them like values of the model.
const (
	Images = "images" // the images that the encoder reads
	Labels = "labels" // whole numbers
)

// Per classifies how a term depends on the images of a batch. The law tests verify it.
type Per int

const (
	// Image terms are means over the images: the contribution of an image does not depend on the other images.
	Image Per = iota
	// Means are functions of means over the batch, such as the mean activation of every unit or a mean over the labelled
	// images. Duplicating every image of a batch does not change the value.
	Means
	// Batch terms compare the images of a batch with each other. The order of the images has no effect.
	Batch
	// Parameter terms do not depend on the images.
	Parameter
)

// Reads declares the inputs of a term.
type Reads struct {
	Per Per

	On    bool // the value `on`
	Unit  bool // the value `on` must lie in [0,1]
	Views bool // the value `on` and Values are computed from the two views instead of the images: (2 batch, values)

	// Against is the default of the key `against`: the column or value to which the term compares the value `on`. Both must
	// have the same size. It is [Images], [Labels], or "" for a term without the key.
	Against string
	Classes bool // the value `against` contains classes: the value `on` has one unit per class, see [Values.Against]
	Groups  int  // if > 0, the value `against` contains groups: one whole number below Groups for each sample
	Labels  int  // if > 0, the labels are whole numbers below it; a negative label is unknown
	Counts  bool // the term is a mean that accepts the keys `mask` and `sample_weight`: see [MeanOf]

	Values []string // further values by name
	Held   []string // values of Values, or [Atoms], through which the term has no gradient
	// Published are the names of values that the layer of the value `on` publishes: see [Values.Published].
	Published   []string
	PublishedBy string // kind of the layer that publishes them, for messages; "" for several kinds
	Teacher     bool   // the value `on` or TeacherOf, computed by the teacher: [Values.Teacher]
	TeacherOf   string // the name of the value that the teacher computes; "" for the value `on`
	Clean       bool   // the value `on`, computed from the clean images: [Values.Clean]

	Atoms    bool   // the decoder, from the layer of its atoms on: [Values.Dictionary]
	AtomsOf  string // path of another dense layer of the decoder, whose rows are the atoms; "" for the layer whose atoms are images
	Jacobian bool   // derivatives of the value `on` with respect to the images: [Values.Encoding]
}

// InParts reports whether the term, computed on the value on, can be accumulated over micro-batches. This holds for means
// over the images, and for functions of the codes alone, because the codes of all images fit into memory.
func (r Reads) InParts(on string) bool {
	return r.Per == Image && !r.Views || r.Per == Parameter || r.Alone(on, Code)
}

// Alone reports whether the term, computed on the value on, reads only the given values and parameters.
func (r Reads) Alone(on string, values ...string) bool {
	if r.Against != "" || r.Views || r.Teacher || r.Clean || r.Atoms || r.Jacobian || len(r.Published) > 0 || r.On && !slices.Contains(values, on) {
		return false
	}
	return !slices.ContainsFunc(r.Values, func(name string) bool { return !slices.Contains(values, name) })
}

// Validates reports whether the term can be measured on images alone: it neither compares the images of a batch with each other
// nor reads views or a teacher. Training measures other terms too, on fixed batches of the validation images.
func (r Reads) Validates() bool { return r.Per != Batch && !r.Views && !r.Teacher }

// UnitsChecker is implemented by terms that restrict the number of units of the value `on`.
type UnitsChecker interface {
	// CheckUnits returns an error if the term is not defined for a value with this number of units.
	CheckUnits(units int) error
}

// AgainstChecker is implemented by terms that compare values of different sizes, such as the parameters of a density with a
// target.
type AgainstChecker interface {
	// CheckAgainst returns an error if the term is not defined for values `on` and `against` of these sizes.
	CheckAgainst(on, against int) error
}

// Learner is implemented by terms with parameters of their own, which the optimizer trains with those of the layers.
type Learner interface {
	// Learned lists them by their initial values. Names contain no dots. The parameter NAME of the term TERM is loss.TERM.NAME.
	Learned() []Learned
}

// Learned is a number that a term learns, a parameter of shape (1).
type Learned struct {
	Name    string
	Initial float64
}

// LearnedBy returns the parameters of a term, nil for none.
func LearnedBy(l Loss) []Learned {
	if l, ok := l.(Learner); ok {
		return l.Learned()
	}
	return nil
}

// ShapeChecker is implemented by terms that restrict the shape of the images.
type ShapeChecker interface {
	// CheckShape returns an error if the term is not defined for images of this shape. The error is a part.KeyError if a key
	// has an invalid value.
	CheckShape(shape []int) error
}

// Values provides the inputs of a term. The first axis of every value is the batch. Methods return an error for values that
// do not exist in the model and for values that the term does not declare in [Reads].
type Values interface {
	// On returns the value `on`, (batch, units), or (2 batch, units) if it is computed from the views.
	On() (*gorgonia.Node, error)
	// Value returns a value by its name: "code", "output" or a head, (batch, units).
	Value(name string) (*gorgonia.Node, error)
	// Published returns a value that the layer of the value `on` publishes, (batch, units). With on = "encoder.2" it is
	// encoder.2.NAME. For "code", "output" or a head the layer is the last one of the encoder, the decoder or the head.
	Published(name string) (*gorgonia.Node, error)
	// Teacher returns the value `on`, or [Reads.TeacherOf], as computed by the teacher. No gradient flows through it.
	Teacher() (*gorgonia.Node, error)
	// Clean returns the value `on` for the clean images, (batch, units). It equals On unless a hook changes the images of a
	// step.
	Clean() (*gorgonia.Node, error)
	// Against returns the column or value `against`, (batch, values). Images are the clean ones if the encoder reads distorted
	// ones. Classes are one-hot, (batch, classes); the row of a sample without a class is 0.
	Against() (*gorgonia.Node, error)
	// Shape returns the shape of one sample of the value `against`: (height, width), (height, width, channels) or (values).
	// For a term on the atoms it is the shape of an image.
	Shape() ([]int, error)
	// Counts returns the mask and the sample weights of the keys `mask` and `sample_weight`.
	Counts() (Counts, error)
	// Weights returns the parameters that match the glob `on`, at least one.
	Weights() ([]*gorgonia.Node, error)
	// Learned returns a parameter of the term itself, of shape (1). See [Learner].
	Learned(name string) (*gorgonia.Node, error)
	// Dictionary returns the decoder from the layer of its atoms on.
	Dictionary() (*Dictionary, error)
	// Encoding returns the images and the value `on` that is computed from them.
	Encoding() (*Encoding, error)
}

// Encoding gives a term with Reads.Jacobian access to the encoder. Such a term must compute derivatives by [ops.Gradient],
// because training differentiates them again.
type Encoding struct {
	Images *gorgonia.Node // the encoder's input, with the batch as first axis
	Code   *gorgonia.Node // the value `on`, (batch, units)

	// Noise returns a new input of the given shape, with the batch as first axis. s draws its values at every training step.
	// For a full-batch objective, which must not change between evaluations, it draws them once for each image.
	Noise func(s ops.Sampler, shape ...int) *gorgonia.Node
}

// Dictionary gives a term with Reads.Atoms access to the decoder. The atoms are the rows of the weight of the decoder's last
// layer with weights, if they have the size of an image. For a term with Reads.AtomsOf they are the rows of the weight of this
// layer, which have the size of its output; the code is its input, and Decode is nil.
type Dictionary struct {
	Images *gorgonia.Node // what the output is trained to equal, by default the images, (batch, pixels)
	Shape  []int          // shape of one image: (height, width) or (height, width, channels)
	Code   *gorgonia.Node // coefficients of the atoms, (batch, atoms): the code if only one decoder layer has weights
	Atoms  *gorgonia.Node // (atoms, pixels)

	// Decode returns the output, (batch, pixels), with other atoms and the same code, bias and later layers.
	Decode func(atoms *gorgonia.Node) (*gorgonia.Node, error)
}

// Build builds the term l on the value on. It returns an error if the term requests an input that it does not declare in
// [Reads], returns no node, or panics.
func Build(l Loss, on string, v Values) (n *gorgonia.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, panics.Of(r)
		}
	}()
	n, err = l.Build(&declared{v, l.Reads(), LearnedBy(l), on})
	if err == nil && n == nil {
		err = errors.New("its Build returns no node")
	}
	return n, err
}

// declared restricts Values to the declared inputs of a term.
type declared struct {
	values  Values
	reads   Reads
	learned []Learned
	on      string
}

// undeclared returns the error for a term that requests an undeclared input.
func undeclared(what string) error { return fmt.Errorf("it does not declare that it reads %s", what) }

func (d *declared) On() (*gorgonia.Node, error) {
	if !d.reads.On {
		return nil, undeclared("the value that `on` names")
	}
	return d.values.On()
}

func (d *declared) Value(name string) (*gorgonia.Node, error) {
	if !slices.Contains(d.reads.Values, name) && !(d.reads.On && name == d.on) {
		return nil, undeclared(fmt.Sprintf("the value %q", name))
	}
	return d.values.Value(name)
}

func (d *declared) Published(name string) (*gorgonia.Node, error) {
	if !slices.Contains(d.reads.Published, name) {
		return nil, undeclared(fmt.Sprintf("the published value %q", name))
	}
	return d.values.Published(name)
}

func (d *declared) Teacher() (*gorgonia.Node, error) {
	if !d.reads.Teacher {
		return nil, undeclared("the teacher")
	}
	return d.values.Teacher()
}

func (d *declared) Clean() (*gorgonia.Node, error) {
	if !d.reads.Clean {
		return nil, undeclared("the clean samples' value")
	}
	return d.values.Clean()
}

func (d *declared) Against() (*gorgonia.Node, error) {
	if d.reads.Against == "" {
		return nil, undeclared("what `against` names")
	}
	return d.values.Against()
}

func (d *declared) Shape() ([]int, error) {
	if d.reads.Against == "" && !d.reads.Atoms {
		return nil, undeclared("what `against` names")
	}
	return d.values.Shape()
}

func (d *declared) Counts() (Counts, error) {
	if !d.reads.Counts {
		return Counts{}, undeclared("`mask` and `sample_weight`")
	}
	return d.values.Counts()
}

func (d *declared) Weights() ([]*gorgonia.Node, error) {
	if d.reads.Per != Parameter {
		return nil, undeclared("parameters, and no samples")
	}
	return d.values.Weights()
}

func (d *declared) Learned(name string) (*gorgonia.Node, error) {
	if !slices.ContainsFunc(d.learned, func(l Learned) bool { return l.Name == name }) {
		return nil, undeclared(fmt.Sprintf("the parameter %q of its own", name))
	}
	return d.values.Learned(name)
}

func (d *declared) Dictionary() (*Dictionary, error) {
	if !d.reads.Atoms {
		return nil, undeclared("the atoms")
	}
	return d.values.Dictionary()
}

func (d *declared) Encoding() (*Encoding, error) {
	if !d.reads.Jacobian {
		return nil, undeclared("derivatives with respect to the samples")
	}
	return d.values.Encoding()
}

// onOutput is embedded by the terms that compare the output with the images or with another column.
type onOutput struct{}

func (onOutput) On() string { return Output }

func (onOutput) Reads() Reads { return Reads{On: true, Against: Images} }

// meanOnOutput is embedded by the terms on the output that are means over entries and images.
type meanOnOutput struct{ onOutput }

func (meanOnOutput) Reads() Reads { return Reads{On: true, Against: Images, Counts: true} }

// onCode is embedded by penalties of the code that are means over the images.
type onCode struct{}

func (onCode) On() string { return Code }

func (onCode) Reads() Reads { return Reads{On: true} }

// meanActivation is embedded by penalties on the mean activation of each unit over the batch.
type meanActivation struct{ onCode }

func (meanActivation) Reads() Reads { return Reads{Per: Means, On: true} }

// Targeted is embedded by penalties on the distance between each unit's mean activation over the batch, t_j, and a target p.
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

func (onAtoms) On() string { return Atoms }

func (onAtoms) Reads() Reads { return Reads{Atoms: true} }

// onWeights is embedded by the penalties of parameters.
type onWeights struct{}

func (onWeights) On() string { return "decoder.*.weight" }

func (onWeights) Reads() Reads { return Reads{Per: Parameter} }

// overWeights returns the sum of one(c, w) over the parameters w that match `on`; one returns a scalar.
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
