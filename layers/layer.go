// Package layers contains the layers and activations of encoders and decoders, and the rules for initial values. A [Layer] or
// an [Init] is one file with its formula, its settings and their defaults.
//
// A new layer needs only a new file with one call of Registry.Register: config, `tessera list`, the gradient check and the
// law tests find it in the registry. Gradients come from automatic differentiation: a layer does not implement its
// derivative.
package layers

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/lists"
)

// Layer is one element of an encoder or a decoder. Shapes do not include the batch axis: an image is (height, width) or
// (height, width, channels), a vector is (units).
type Layer interface {
	// OutputShape returns the shape of one output for one input of shape in, or an error if the layer does not accept inputs
	// of that shape.
	OutputShape(in []int) ([]int, error)
	// Parameters lists the parameters for inputs of shape in, in a fixed order; nil if the layer has none.
	Parameters(in []int) []Parameter
	// Apply adds the layer's expression to the graph of x, whose first axis is the batch.
	Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error)
}

// Registry contains every layer, including activations.
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
	// Unaveraged marks state that is the same for the model and its teachers: a teacher reads the model's values instead of its
	// average of them.
	Unaveraged bool
	// Of is the path of another layer's parameter. If it is set, this parameter is an alias of that parameter, or with
	// Transposed an alias of its transpose, and has no separate storage.
	Of         string
	Transposed bool
}

// Names lists the names of parameters.
func Names(list []Parameter) []string {
	return lists.Map(list, func(p Parameter) string { return p.Name })
}

// Value is a value that a layer publishes in addition to its output, such as a mean or attention weights. The name of the
// value in the model is the path of the layer followed by Name, for example "encoder.2.mean".
type Value struct {
	Name  string
	Shape []int // shape of the value for one input, without the batch axis
	// Entries is > 0 for the indices of a code book: whole numbers below Entries.
	Entries int
}

// Drawing is implemented by layers with published values that are random in training and constant at inference, such as
// masks. A term that uses such a value as its mask is not measured on validation images.
type Drawing interface {
	Publisher
	// Draws lists the names of the random values.
	Draws() []string
}

// Publisher is implemented by layers that publish values in addition to their output. Apply passes each value to
// [Scope.Publish].
type Publisher interface {
	Layer
	// Publishes lists the values for inputs of a valid shape in, in a fixed order. The names of the values contain no dots.
	Publishes(in []int) []Value
}

// Reading describes a value that a layer reads by name: the key that contains the name, the name, and the shape for one input,
// nil if unknown.
type Reading struct {
	Key, Name string
	Shape     []int
	Fixed     bool // no gradient flows through the value, for example a mask
}

// Reader is implemented by layers that read further values of the model by name, in addition to their input: other tokens, a
// mask. [Layer.Apply] gets the values from [Scope.Value].
type Reader interface {
	Layer
	// Reads lists the values that the layer reads by name, in a fixed order; nil if the settings name none.
	Reads() []Reading
	// Receive sets the shapes of the values, in the order of Reads; nil is an unknown shape. It is called before all other
	// methods.
	Receive(shapes [][]int)
}

// Readings lists the values that l, or a layer inside it, reads by name.
func Readings(l Layer) (list []Reading) {
	if r, ok := l.(Reader); ok {
		list = append(list, r.Reads()...)
	}
	if b, ok := l.(Block); ok {
		for _, inner := range b.Inner() {
			list = append(list, Readings(inner)...)
		}
	}
	return list
}

// Receive gives l, and the layers inside it, the shapes of the values that they read by name.
func Receive(l Layer, shape func(name string) []int) {
	if r, ok := l.(Reader); ok {
		shapes := lists.Map(r.Reads(), func(v Reading) []int { return shape(v.Name) })
		r.Receive(shapes)
	}
	if b, ok := l.(Block); ok {
		for _, inner := range b.Inner() {
			Receive(inner, shape)
		}
	}
}

// Shortening is implemented by layers whose output has a different shape in training, such as fewer tokens, and by layers
// that restore the original shape. The parameters of the layers between them must not depend on the number of tokens.
type Shortening interface {
	Layer
	// TrainingShape returns the shape of the output in training for inputs of shape in. A previous layer may already have
	// shortened the input.
	TrainingShape(in []int) []int
}

// Passing is implemented by layers whose output is their input: a loss that reads what a layer publishes reads it through them.
type Passing interface {
	Layer
	Passes()
}

// Estimated is implemented by layers that estimate the gradients with respect to some parameters or to their input, for
// example because the true derivative of a step function is 0. The law tests do not compare these gradients with finite
// differences.
type Estimated interface {
	Layer
	// Estimates lists the names of the parameters with estimated gradients, and [EstimatedInput] for the input.
	Estimates() []string
}

// EstimatedInput stands for the input of a layer in [Estimated].
const EstimatedInput = "input"

// Indexing is implemented by layers whose inputs are whole numbers. Such inputs have no gradient.
type Indexing interface {
	Layer
	// Indices returns the number of valid input values: the whole numbers from 0 to Indices() - 1.
	Indices() int
}

// TakesUnknown is implemented by indexing layers that also accept -1, an unknown class, if Unknowns reports true.
type TakesUnknown interface {
	Indexing
	Unknowns() bool
}

// Rearranging is implemented by layers whose outputs are values of their input, unchanged: they only move values, or leave some out.
// A column of whole numbers can be looked up behind them.
type Rearranging interface {
	Layer
	// Rearranges marks such a layer.
	Rearranges()
}

// Averaging is implemented by layers that use running averages at inference.
type Averaging interface {
	Layer
	// Average returns the key of the decay of the averages, and the decay in [0,1) per step.
	Average() (key string, decay float64)
}

// Borrower is implemented by layers that use a parameter of another stack. A layer of the decoder can borrow from the
// encoder, a layer of a head from the encoder and the decoder.
type Borrower interface {
	Layer
	// Borrows returns the path of the borrowed parameter.
	Borrows() string
	// Lend sets the shape of the borrowed parameter, nil if it does not exist. It is called before all other methods.
	Lend(shape []int)
}

// Scope gives a layer access to the graph being built.
type Scope interface {
	// Parameter returns the node of a declared parameter.
	Parameter(name string) *gorgonia.Node
	// Update makes every training step assign the value of a node to a declared parameter with State. The assignment takes
	// place after the gradients of the step are computed, so the graph itself reads the old value. Update has no effect at
	// inference.
	Update(name string, value *gorgonia.Node)
	// Publish makes a node readable by losses, heads, metrics and other layers. Its full name is the path of the layer
	// followed by name. Its first axis is the batch. The layer must be a [Publisher] that declares the value.
	Publish(name string, value *gorgonia.Node)
	// Value returns a value that the layer reads by name, with the batch as first axis. The layer must be a [Reader] that
	// lists the value.
	Value(name string) *gorgonia.Node
	// Noise returns an input node of the given shape, batch included. At every training step, s draws its values from the
	// run's random stream.
	Noise(s ops.Sampler, shape ...int) *gorgonia.Node
	// Training reports whether the graph is built for training; noise layers are the identity otherwise.
	Training() bool
	// Teacher reports whether the layer is applied, in inference mode, with the parameters of a teacher of the model that is
	// being trained.
	Teacher() bool
	// Frozen reports whether all parameters with these names are frozen. Without names it is false.
	Frozen(names ...string) bool
	// Place returns the numbers from 0, (batch, 1), of the tokens that the graph computes alone; nil in a graph of whole sequences. See [Stepping].
	Place() *gorgonia.Node
	// Past returns what a value (batch, 1, features) of such a token was for the tokens before it: (batch, tokens - 1, features), with any finite
	// values where there is no such token. The layer then calls keep once, with this value of the token itself.
	Past(features int) (past *gorgonia.Node, keep func(x *gorgonia.Node))
}

// Shifting is implemented by layers that may add a learned bias to every unit or channel of their outputs.
type Shifting interface {
	Layer
	// AddsBias reports whether the layer has a bias and a linear activation, so that the bias is added last.
	AddsBias() bool
}

// Noisy is implemented by layers that draw noise in training. A layer that calls [Scope.Noise] must implement it.
type Noisy interface {
	// Noisy reports whether noise is drawn with these settings.
	Noisy() bool
}

// IsNoisy reports whether l, or a layer inside it, draws noise in training.
func IsNoisy(l Layer) bool {
	if b, ok := l.(Block); ok {
		return slices.ContainsFunc(b.Inner(), IsNoisy)
	}
	n, ok := l.(Noisy)
	return ok && n.Noisy()
}

// Expanding is implemented by layers whose intermediate tensors are larger than their inputs and outputs.
type Expanding interface {
	// Largest returns the number of values of the largest intermediate tensor for one input of a valid shape in.
	Largest(in []int) int
	// Expands returns a description of the largest intermediate tensor, and advice on how to make it smaller, for an error
	// message.
	Expands(in []int) (what, advice string)
}

// Interval is a range of values, ends included.
type Interval struct{ Low, High float64 }

// Everything is the interval of all real numbers.
var Everything = Interval{math.Inf(-1), math.Inf(1)}

// Within reports whether every value of i lies in o.
func (i Interval) Within(o Interval) bool { return i.Low >= o.Low && i.High <= o.High }

// Ranged is implemented by layers with bounded outputs; the range of other layers is [Everything]. Sparsity targets and cross
// entropies use it to check that their inputs are probabilities.
type Ranged interface {
	// OutputRange returns an interval that contains all outputs for inputs in the interval in.
	OutputRange(in Interval) Interval
}

// OutputRange returns an interval that contains the outputs of l for inputs in the interval in.
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
	// Inner lists the inner layers, in order.
	Inner() []Layer
}

// InnerError is the error of an invalid layer inside a block.
type InnerError struct {
	Index int // index of the layer in the block
	Err   error
}

func (e InnerError) Error() string { return fmt.Sprintf("layers[%d]: %v", e.Index, e.Err) }

// Unwrap returns the layer's error.
func (e InnerError) Unwrap() error { return e.Err }

// StackShapes returns the input shape of each layer of a block, then its output shape. The OutputShape of a [Block] uses it.
// Errors are wrapped in an [InnerError].
func StackShapes(block []Layer, in []int) ([][]int, error) {
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

// StackParameters lists the parameters of the layers of a block. The index of the layer precedes each name: "0.weight".
func StackParameters(block []Layer, in []int) []Parameter {
	shapes, err := StackShapes(block, in)
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

// ApplyStack adds the layers of a block to the graph of x; kind names the block in errors.
func ApplyStack(kind string, block []Layer, s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	y := x
	for i, l := range block {
		var err error
		if y, err = l.Apply(Inner(s, i, l, y.Shape()[1:]), y); err != nil {
			return nil, fmt.Errorf("%s: layers[%d]: %w", kind, i, err)
		}
	}
	return y, nil
}

// StackPublishes lists the values that the layers of a block publish. The index of the layer precedes each name.
func StackPublishes(block []Layer, in []int) (all []Value) {
	shapes, err := StackShapes(block, in)
	if err != nil {
		return nil // OutputShape returns the error
	}
	for i, l := range block {
		if p, ok := l.(Publisher); ok {
			for _, v := range p.Publishes(shapes[i]) {
				v.Name = innerName(i, v.Name)
				all = append(all, v)
			}
		}
	}
	return all
}

// Inner returns the scope of l, the layer with index i in a block, for inputs of shape in; s is the scope of the block. A
// block that applies its layers in a different order, or a layer several times, calls l.Apply with this scope. The parameters
// of l then have the names that [StackParameters] lists. To apply layers one after the other, use [ApplyStack].
func Inner(s Scope, i int, l Layer, in []int) Scope {
	return named(s, strconv.Itoa(i), l, in)
}

// named is like [Inner], with any prefix in place of the index.
func named(s Scope, prefix string, l Layer, in []int) Scope {
	inner := innerScope{Scope: s, prefix: prefix + "."}
	if _, block := l.(Block); !block { // each of its layers depends on its own parameters
		inner.parameters = l.Parameters(in)
	}
	return inner
}

// innerScope is the Scope of a layer in a block.
type innerScope struct {
	Scope
	prefix     string      // prefix of the names of its parameters and values
	parameters []Parameter // parameters of the layer; nil for a block
}

func (s innerScope) Parameter(name string) *gorgonia.Node {
	return s.Scope.Parameter(s.prefix + name)
}

func (s innerScope) Update(name string, value *gorgonia.Node) {
	s.Scope.Update(s.prefix+name, value)
}

func (s innerScope) Publish(name string, value *gorgonia.Node) {
	s.Scope.Publish(s.prefix+name, value)
}

// Training implements [Scope]. A frozen layer runs in inference mode, independently of the other layers of the block.
func (s innerScope) Training() bool { return s.Scope.Training() && !s.Frozen(Names(s.parameters)...) }

func (s innerScope) Frozen(names ...string) bool {
	inner := lists.Map(names, func(name string) string { return s.prefix + name })
	return s.Scope.Frozen(inner...)
}

// innerName returns the name that the parameter of layer i has in its block.
func innerName(i int, name string) string { return strconv.Itoa(i) + "." + name }

// StackRange returns the range of the outputs of a block, for inputs in the interval in.
func StackRange(block []Layer, in Interval) Interval {
	for _, l := range block {
		if l == nil {
			return Everything
		}
		in = OutputRange(l, in)
	}
	return in
}

// Preparing is implemented by layers that start with a costly, fixed function of each image. If the first layer of an encoder
// is Preparing, a training hook may compute this function once for every image; the graph then applies only Rest.
type Preparing interface {
	Layer
	// Preparation returns a description of the fixed function. A hook decides by the type of the description whether it can
	// compute the function.
	Preparation() any
	// Rest applies the remaining computation to the result of the fixed function. This result has the shape that OutputShape
	// returns.
	Rest(s Scope, prepared *gorgonia.Node) (*gorgonia.Node, error)
}

// Fitted is implemented by [Preparing] layers that a hook fits to the training samples and one of their columns before the first step.
type Fitted interface {
	Preparing
	// FittedTo returns the key that contains the name of the column, and the name.
	FittedTo() (key, column string)
}

// Init draws the initial values of a parameter. In models.toml it is a name (`init = "he_normal"`) or a table (`init = {
// kind = "normal", stddev = 0.05 }`).
type Init interface {
	// Fill sets every element of w; fanIn and fanOut are the numbers of inputs and outputs of a unit.
	Fill(w []float32, fanIn, fanOut int, r *rand.Rand)
}

// MatrixInit is implemented by initialisations of matrices. The columns of the matrix are along the last axis of the
// parameter.
type MatrixInit interface {
	Init
	// FillMatrix sets every element of w, a matrix with the given number of columns.
	FillMatrix(w []float32, columns int, r *rand.Rand)
}

// Fill sets w to the initial values of the parameter.
func (p Parameter) Fill(w []float32, r *rand.Rand) {
	if m, ok := p.Init.(MatrixInit); ok && len(p.Shape) > 1 {
		m.FillMatrix(w, p.Shape[len(p.Shape)-1], r)
		return
	}
	p.Init.Fill(w, p.FanIn, p.FanOut, r)
}

// Inits contains every initialisation.
var Inits = part.New[Init]("init")
