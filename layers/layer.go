// Package layers contains the layers and activations of encoders and decoders: one file per layer with its formula, its
// settings and their defaults.
//
// A new layer is one new file with one call of Registry.Register; config, `tessera list`, the gradient check and the law
// tests find it in the registry. Gradients come from automatic differentiation only: a layer never implements its
// derivative.
package layers

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/ops"
	"tessera/part"
)

// Layer is one element of an encoder or a decoder. Shapes leave the batch out: an image is (height, width) or
// (height, width, channels), a vector is (units).
type Layer interface {
	// OutputShape returns the shape of one output for one input of shape in, or an error if the shape does not fit.
	OutputShape(in []int) ([]int, error)
	// Parameters lists the layer's parameters for inputs of shape in, in a fixed order; nil if it has none.
	Parameters(in []int) []Parameter
	// Apply adds the layer's expression to the graph of x, whose first axis is the batch.
	Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error)
}

// Registry holds every layer, activations included.
var Registry = part.New[Layer]("layer")

// SizeKey is the key of the number of outputs of a [Sized] layer.
const SizeKey = "units"

// Sized is implemented by layers whose number of outputs is a setting, under the key [SizeKey]. In the last Sized layer of
// a decoder the default is the size of the model's input.
type Sized interface {
	Layer
	// OutputUnits returns the number of outputs, 0 if it is not set.
	OutputUnits() int
	// SetOutputUnits sets the number of outputs, n > 0.
	SetOutputUnits(n int)
}

// Parameter declares one tensor of a layer. Its path in the model is "encoder.0." + Name.
type Parameter struct {
	Name          string // "weight", "bias", ...
	Shape         []int
	Init          Init
	FanIn, FanOut int  // inputs and outputs of a unit, > 0, for the Glorot and He rules
	State         bool // updated by the layer's rule (a running average), not by the optimizer
	// TransposeOf is the path of another layer's parameter if this parameter is its transpose; it then has no separate
	// storage. Empty otherwise.
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

// Borrower is implemented by layers that use a parameter of an earlier stack. A layer of the decoder can borrow from the encoder, a
// layer of a head from the encoder and the decoder.
type Borrower interface {
	Layer
	// Borrows returns the path of that parameter.
	Borrows() string
	// Lend sets the shape of that parameter, nil if it does not exist. It is called before all other methods.
	Lend(shape []int)
}

// Scope gives a layer access to the graph being built.
type Scope interface {
	// Parameter returns the node of a declared parameter.
	Parameter(name string) *gorgonia.Node
	// Update makes every training step assign the value of a node to a declared parameter with State. The assignment
	// happens after the step's gradients are computed: the graph itself reads the old value. Update has no effect at
	// inference.
	Update(name string, value *gorgonia.Node)
	// Noise returns an input node of that shape (batch included). s draws its values from the run's random stream at every
	// training step.
	Noise(s ops.Sampler, shape ...int) *gorgonia.Node
	// Training reports whether the graph is built for training; noise layers are the identity otherwise.
	Training() bool
	// Frozen reports whether names is not empty and all parameters with these names are frozen.
	Frozen(names ...string) bool
}

// Shifting is implemented by layers that may add a learned bias to every unit or channel of their outputs.
type Shifting interface {
	Layer
	// AddsBias reports whether a bias is the last thing that the layer adds: it has one, and its activation is linear.
	AddsBias() bool
}

// Noisy is implemented by layers that draw noise in training. A layer that calls [Scope.Noise] must implement it.
type Noisy interface {
	// Noisy reports whether noise is drawn with these settings.
	Noisy() bool
}

// IsNoisy reports whether l, or a layer in it, draws noise in training.
func IsNoisy(l Layer) bool {
	if b, ok := l.(Block); ok {
		return slices.ContainsFunc(b.Inner(), IsNoisy)
	}
	n, ok := l.(Noisy)
	return ok && n.Noisy()
}

// Expanding is implemented by layers whose intermediate tensors are larger than their inputs and outputs.
type Expanding interface {
	// Largest is the number of values of the largest intermediate tensor for one input of a valid shape in.
	Largest(in []int) int
	// Expands describes that tensor and how to make it smaller, for an error message.
	Expands(in []int) (what, advice string)
}

// Interval is a range of values, ends included.
type Interval struct{ Low, High float64 }

// Everything is the interval of all real numbers.
var Everything = Interval{math.Inf(-1), math.Inf(1)}

// Within reports whether every value of i lies in o.
func (i Interval) Within(o Interval) bool { return i.Low >= o.Low && i.High <= o.High }

// Ranged is implemented by layers with bounded outputs; all others map into [Everything]. Sparsity targets and cross
// entropies use it to check that their inputs are probabilities.
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

// Block is implemented by layers that contain other layers, declared under the key "layers". The names of the i-th inner
// layer's parameters have the prefix "i.". Errors of inner layers are wrapped in an [InnerError].
type Block interface {
	Layer
	// Inner lists the layers, in order.
	Inner() []Layer
}

// InnerError is the error of a layer in a block.
type InnerError struct {
	Index int
	Err   error
}

// Error implements error.
func (e InnerError) Error() string { return fmt.Sprintf("layers[%d]: %v", e.Index, e.Err) }

// Unwrap returns the layer's error.
func (e InnerError) Unwrap() error { return e.Err }

// stackShapes returns the input shape of each layer of a block, then its output shape.
func stackShapes(block []Layer, in []int) ([][]int, error) {
	list := [][]int{in}
	for i, l := range block {
		if l == nil {
			return nil, InnerError{i, errors.New("is not known")}
		}
		out, err := l.OutputShape(list[i])
		if err != nil {
			return nil, InnerError{i, err}
		}
		list = append(list, out)
	}
	return list, nil
}

// stackParameters lists the parameters of the layers of a block, each with the index of its layer before its name.
func stackParameters(block []Layer, in []int) []Parameter {
	shapes, err := stackShapes(block, in)
	if err != nil {
		return nil // OutputShape returns the error
	}
	var all []Parameter
	for i, l := range block {
		for _, p := range l.Parameters(shapes[i]) {
			p.Name = innerName(i, p.Name)
			all = append(all, p)
		}
	}
	return all
}

// applyStack adds the layers of a block to the graph of x; kind names the block in errors.
func applyStack(kind string, block []Layer, s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	y := x
	for i, l := range block {
		inner := innerScope{Scope: s, index: i}
		if _, block := l.(Block); !block { // each of its layers decides by its own parameters
			inner.parameters = l.Parameters(y.Shape()[1:])
		}
		var err error
		if y, err = l.Apply(inner, y); err != nil {
			return nil, fmt.Errorf("%s: layers[%d]: %w", kind, i, err)
		}
	}
	return y, nil
}

// stackRange is the range of the values of a block.
func stackRange(block []Layer, in Interval) Interval {
	for _, l := range block {
		if l == nil {
			return Everything
		}
		in = OutputRange(l, in)
	}
	return in
}

// Preparing is implemented by layers that start with a costly, fixed function of single images. If the first layer of an
// encoder is Preparing, a training hook may compute that function once for every image; the graph then applies only Rest.
type Preparing interface {
	Layer
	// Preparation describes the fixed function. A hook recognises it by its type.
	Preparation() any
	// Rest applies the remaining computation to the result of the fixed function, which has the shape that OutputShape
	// returns.
	Rest(s Scope, prepared *gorgonia.Node) (*gorgonia.Node, error)
}
