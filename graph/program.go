// Package graph turns a checked declaration into a model: parameters by path, and Gorgonia expression graphs with
// gradients by gorgonia.Grad. A program of the model is an [ir.Program], which an [ir.Backend] compiles and runs.
package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/losses"
)

// Parameter is one named tensor of a model. All programs of the model share Data.
type Parameter struct {
	Path      string // "encoder.0.weight"
	Shape     []int
	Data      []float32 // row-major
	Trainable bool      // updated by the optimizer; false for running averages and frozen parameters
	Frozen    bool      // neither the optimizer nor its layer changes the parameter
}

// Program is the graph for one batch size, for training (with gradients) or for inference.
type Program struct {
	Graph      *gorgonia.ExprGraph
	Dtype      tensor.Dtype // tensor.Float32 for training, tensor.Float64 for checks
	Batch      int
	Inputs     []Input   // values from the caller, then [Images], [Target], [Views] and [Labels] if they are read, then noise
	Parameters []Binding // every parameter that the graph reads
	Taps       []Tap     // values that can be read after a run
	Updates    []Update  // state that is assigned after the run

	layers map[*gorgonia.Node]string // path and kind of the layer that added each node
}

// Input is a tensor that the caller fills before every run.
type Input struct {
	Name    string // [Images], [Target], [Views], [Labels], the name of a value or of a noise input
	Node    *gorgonia.Node
	Shape   []int       // batch included
	Sampler ops.Sampler // draws the values of noise; nil for data
	Fixed   bool        // the noise is drawn once for each image, for a full-batch objective
	Column  string      // column of the data that fills the input, "" if none does
	Classes int         // number of classes of a one-hot column; 0 for other inputs

	Weight losses.Weight // schedule of the weight of a term, whose current value the caller fills in; nil for other inputs

	// Preparation describes how the caller prepares the images for this input; nil for other inputs. See
	// [layers.Preparing].
	Preparation any
}

// WeightName returns the name of the input for the weight of a term.
func WeightName(term string) string { return "weight." + term }

// UnweightedName returns the name of the tap of a term without its weight. It exists for weights that depend on the
// value of the term ([losses.Adaptive]).
func UnweightedName(term string) string { return "unweighted." + term }

// Binding is a parameter with its nodes in a graph.
type Binding struct {
	*Parameter
	Node     *gorgonia.Node
	Gradient *gorgonia.Node // nil in inference, and for parameters that the optimizer does not update
}

// Tap is a node that can be read after a run: "loss", a weighted term such as "loss.mse", or a value of the model such as
// "code" or "output".
type Tap struct {
	Name string
	Node *gorgonia.Node
}

// Update assigns a value of the graph to a parameter after a run, for example a running average. [ir.Runner.Parameter]
// returns the updated values.
type Update struct {
	Parameter *Parameter
	Node      *gorgonia.Node
}

// IndexOf returns the index of q in Parameters, -1 if the graph does not read q.
func (p *Program) IndexOf(q *Parameter) int {
	return slices.IndexFunc(p.Parameters, func(b Binding) bool { return b.Parameter == q })
}

// Module implements [ir.Program]. The parameters of the module share their data with the model.
func (p *Program) Module() (*ir.Module, error) {
	if p == nil {
		return nil, errors.New("graph: no program")
	}
	dtype, err := fromgraph.Dtype(p.Dtype)
	if err != nil {
		return nil, err
	}
	m := &ir.Module{Dtype: dtype, Batch: p.Batch}
	t := fromgraph.New(p.Dtype)
	t.Layers = p.layers
	for i, in := range p.Inputs {
		m.Inputs = append(m.Inputs, ir.Input{Name: in.Name, Shape: in.Shape})
		t.Leaf(in.Node, ir.Leaf{Kind: ir.InputLeaf, Index: i}, in.Name, in.Shape)
	}
	for i, b := range p.Parameters {
		m.Parameters = append(m.Parameters, ir.Parameter{Name: b.Path, Shape: b.Shape, Data: b.Data})
		t.Leaf(b.Node, ir.Leaf{Kind: ir.ParameterLeaf, Index: i}, b.Path, b.Shape)
	}
	if err := p.wanted(m, t); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return m, nil
}

// wanted adds the taps, the gradients and the updates to the module.
func (p *Program) wanted(m *ir.Module, t *fromgraph.Translator) error {
	for _, tap := range p.Taps {
		v, err := t.Value(tap.Node)
		if err != nil {
			return err
		}
		m.Taps = append(m.Taps, ir.Tap{Name: tap.Name, Value: v})
	}
	for i, b := range p.Parameters {
		if b.Gradient == nil {
			continue
		}
		v, err := t.Value(b.Gradient)
		if err != nil {
			return err
		}
		m.Gradients = append(m.Gradients, ir.Gradient{Parameter: i, Value: v})
	}
	for _, u := range p.Updates {
		i := p.IndexOf(u.Parameter)
		if i < 0 {
			return fmt.Errorf("update of %s: the program does not list this parameter", u.Parameter.Path)
		}
		v, err := t.Value(u.Node)
		if err != nil {
			return err
		}
		m.Updates = append(m.Updates, ir.Update{Parameter: i, Value: v})
	}
	return nil
}
