// Package graph turns a checked declaration into a model: parameters by path, a Gorgonia expression graph with taps,
// gradients by gorgonia.Grad, behind a small interface of back ends that run it.
package graph

import (
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/losses"
	"tessera/ops"
)

// Parameter is one named tensor of a model. Data is shared by every program and plan that uses the parameter.
type Parameter struct {
	Path      string // "encoder.0.weight"
	Shape     []int
	Data      []float32 // row-major
	Trainable bool      // moved by the optimizer; false for running averages and frozen parameters
	Frozen    bool      // keeps its value: neither the optimizer nor a rule of its layer moves it
}

// Program is one graph to run: for one batch size, in training (with gradients) or in inference.
type Program struct {
	Graph      *gorgonia.ExprGraph
	Dtype      tensor.Dtype // tensor.Float32 for training, tensor.Float64 for checks
	Batch      int
	Inputs     []Input   // values that are given; then the streams [Images], [Target], [Views], [Labels], as far as they are read; then noise
	Parameters []Binding // every parameter that the graph reads
	Taps       []Tap     // what can be read after a run
	Updates    []Update  // state that the graph moves: assigned after the run
}

// Input is a leaf that the caller fills before every run.
type Input struct {
	Name    string // [Images], [Target], [Views], [Labels], the name of a value, or what the noise is of
	Node    *gorgonia.Node
	Shape   []int       // batch included
	Sampler ops.Sampler // nil for data
	Fixed   bool        // noise that is drawn once for each image: the full-batch objective is the same at every evaluation

	Weight losses.Weight // the schedule of the weight of a term, whose number the caller gives; nil for all others

	// Preparation is what the caller makes of the images for this input, nil for all others; see [layers.Preparing].
	Preparation any
}

// Binding is a parameter and its nodes.
type Binding struct {
	*Parameter
	Node     *gorgonia.Node
	Gradient *gorgonia.Node // nil in inference and for parameters that the optimizer does not move
}

// Tap is a named value that can be read after a run: "loss", "loss.mse" (weighted, they sum to "loss"), and values by name: "code", "output".
type Tap struct {
	Name  string
	Node  *gorgonia.Node
	Shape []int // batch included; empty for a scalar
}

// Update assigns a value of the graph to a parameter after a run (a running average): to what [Runner.Parameter] returns.
type Update struct {
	Parameter *Parameter
	Node      *gorgonia.Node
}

// Listed returns the place of a parameter in Parameters, -1 where the graph does not read it.
func (p *Program) Listed(q *Parameter) int {
	return slices.IndexFunc(p.Parameters, func(b Binding) bool { return b.Parameter == q })
}

// Float is the precision of a run.
type Float interface{ float32 | float64 }

// Runner runs one program. It is not safe for use by several goroutines at once.
type Runner[T Float] interface {
	// Bind makes the next runs read Inputs[i] from values (row-major, batch included), which must not change during a run.
	Bind(i int, values []T) error
	// Run computes every tap and gradient.
	Run() error
	// Tap returns the values of Taps[i]; they are valid until the next Run.
	Tap(i int) []T
	// Parameter returns the values that the program reads as Parameters[i]. In float32 it is Parameter.Data itself;
	// in float64 a copy, which the caller may set.
	Parameter(i int) []T
	// Gradient returns the gradient of "loss" with respect to Parameters[i], nil where there is none; valid until the next Run.
	Gradient(i int) []T
	// Close frees what the runner holds outside the Go heap, and its goroutines.
	Close() error
}

// Backend compiles programs for training and inference in float32.
type Backend interface {
	Compile(p *Program) (Runner[float32], error)
}
