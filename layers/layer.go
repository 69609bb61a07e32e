// Package layers is the vocabulary of encoders and decoders: one file per layer or activation, each with its formula,
// its settings and their defaults.
//
// A new layer is one new file with one call of Registry.Register; config, `tessera list`, the gradient gate and the
// law tests find it by themselves. Gradients come from automatic differentiation only: a layer says what it computes,
// never how to differentiate it.
package layers

import (
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/ops"
	"tessera/part"
)

// Layer is one element of an encoder or a decoder. Shapes leave the batch out: an image is (height, width) or
// (height, width, channels), a vector is (units).
type Layer interface {
	// OutputShape returns the shape of one output for one input of shape in, or an error that says what does not fit.
	OutputShape(in []int) ([]int, error)
	// Parameters lists what the layer learns for inputs of shape in, in a fixed order; nil when it learns nothing.
	Parameters(in []int) []Parameter
	// Apply adds the layer's expression to the graph of x, whose first axis is the batch.
	Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error)
}

// Registry holds every layer, activations included.
var Registry = part.New[Layer]("layer")

// SizeKey is the key of the setting that is the number of outputs of a [Sized] layer.
const SizeKey = "units"

// Sized is implemented by layers whose number of outputs is a setting, under the key [SizeKey]. The last of them in a decoder takes the size of
// the model's input when its declaration leaves the number out.
type Sized interface {
	Layer
	// OutputUnits returns the number of outputs, 0 when it was left out.
	OutputUnits() int
	// SetOutputUnits sets the number of outputs, n > 0.
	SetOutputUnits(n int)
}

// Parameter declares one tensor of a layer. Its path in the model is "encoder.0." + Name.
type Parameter struct {
	Name          string // "weight", "bias", ...
	Shape         []int
	Init          Init
	FanIn, FanOut int  // what one unit reads and feeds, > 0, for the Glorot and He rules
	State         bool // moved by the layer's rule (a running average), not by the optimizer
	// TransposeOf is the path of another layer's parameter, of which this one is the transpose: the layer then has none of
	// its own. Empty otherwise.
	TransposeOf string
}

// Names lists the names of parameters.
func Names(list []Parameter) []string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return names
}

// Borrower is implemented by decoder layers that use a parameter of the encoder.
type Borrower interface {
	Layer
	// Borrows returns the path of that parameter.
	Borrows() string
	// Lend tells its shape before anything else is asked of the layer: nil where there is no such parameter.
	Lend(shape []int)
}

// Scope is what a layer sees of the graph being built.
type Scope interface {
	// Parameter returns the node of a declared parameter.
	Parameter(name string) *gorgonia.Node
	// Update makes every training step assign the value of a node to a declared parameter with State, once the step's
	// gradients are known: the graph itself reads the parameter as it was. Without effect at inference.
	Update(name string, value *gorgonia.Node)
	// Noise returns an input node of that shape (batch included) whose values s draws from the run's own
	// stream at every training step.
	Noise(s ops.Sampler, shape ...int) *gorgonia.Node
	// Training reports whether the graph is built for training; noise layers are the identity otherwise.
	Training() bool
	// Frozen reports whether there are names, and all of the declared parameters with these keep their values.
	Frozen(names ...string) bool
}

// Noisy is implemented by layers that draw noise in training: all that calls [Scope.Noise] must.
type Noisy interface {
	// Noisy reports whether noise is drawn with these settings.
	Noisy() bool
}

// IsNoisy reports whether l, or a layer of it, draws noise in training.
func IsNoisy(l Layer) bool {
	if b, ok := l.(Block); ok {
		return slices.ContainsFunc(b.Inner(), IsNoisy)
	}
	n, ok := l.(Noisy)
	return ok && n.Noisy()
}

// Expanding is implemented by layers that on their way compute a larger tensor than what they read and give.
type Expanding interface {
	// Largest is the number of values of that tensor for one input of shape in, which fits.
	Largest(in []int) int
	// Expands says what the values are of, and what makes them fewer.
	Expands(in []int) (what, advice string)
}

// Interval is a range of values, ends included.
type Interval struct{ Low, High float64 }

// Everything is the interval of all real numbers.
var Everything = Interval{math.Inf(-1), math.Inf(1)}

// Within reports whether every value of i lies in o.
func (i Interval) Within(o Interval) bool { return i.Low >= o.Low && i.High <= o.High }

// Ranged is implemented by layers that bound their outputs; all others map into [Everything]. It is how a sparsity
// target or a cross entropy knows that it gets probabilities.
type Ranged interface {
	OutputRange(in Interval) Interval
}

// OutputRange returns the interval that l maps values of in into.
func OutputRange(l Layer, in Interval) Interval {
	if r, ok := l.(Ranged); ok {
		return r.OutputRange(in)
	}
	return Everything
}
