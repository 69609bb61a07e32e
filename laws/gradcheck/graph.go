// Package gradcheck compares Gorgonia's gradients with central differences, in float64 on Gorgonia's tape machine: the
// check does not use the engine.
package gradcheck

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir/fromgraph"
	"tessera/ops"
)

// Builder collects the leaves of an expression while it is built.
type Builder[T ops.Float] struct {
	graph   *gorgonia.ExprGraph
	leaves  []*Leaf[T]
	noises  int
	asked   bool                      // a layer reads the mode
	updates map[string]*gorgonia.Node // updates of a layer's state, by the parameter's name
}

// Node returns the node of the i-th leaf.
func (b *Builder[T]) Node(i int) *gorgonia.Node { return b.leaves[i].Node }

// Leaf is an input of an expression. A run reads Values, which the caller may change in place between runs.
type Leaf[T ops.Float] struct {
	Name      string
	Values    []T
	Fixed     bool        // not differentiated: a target, a mask
	Parameter bool        // of a layer
	Batch     bool        // of a loss: its first axis is the batch
	Used      bool        // of a parameter: the layer asks for it
	Sampler   ops.Sampler // draws the values; nil for data

	Node       *gorgonia.Node
	Derivative *gorgonia.Node // of the expression with respect to the leaf; nil if not requested

	gradient gorgonia.Value
}

// Gradient returns the derivatives of the expression with respect to the leaf, nil before a run and for fixed leaves.
func (l *Leaf[T]) Gradient() []T { return flat[T](l.gradient) }

// Leaf adds an input with its initial values; the name must be new.
func (b *Builder[T]) Leaf(name string, shape []int, values []T, fixed bool) *gorgonia.Node {
	return b.leaf(name, shape, values, fixed).Node
}

func (b *Builder[T]) leaf(name string, shape []int, values []T, fixed bool) *Leaf[T] {
	l := &Leaf[T]{Name: name, Values: slices.Clone(values), Fixed: fixed}
	l.Node = gorgonia.NewTensor(b.graph, dtypeOf[T](), len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name),
		gorgonia.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(l.Values))))
	b.leaves = append(b.leaves, l)
	return l
}

// dtypeOf is Gorgonia's name of T.
func dtypeOf[T ops.Float]() tensor.Dtype {
	var zero T
	return tensor.New(tensor.FromScalar(zero)).Dtype()
}

// Expression builds a value from leaves.
type Expression[T ops.Float] func(b *Builder[T]) (*gorgonia.Node, error)

// Built is an expression in its own graph, for any machine.
type Built[T ops.Float] struct {
	Graph   *gorgonia.ExprGraph
	Dtype   tensor.Dtype
	Leaves  []*Leaf[T]
	Value   *gorgonia.Node
	Modes   bool                      // a layer reads the mode: only then training and inference can differ
	Updates map[string]*gorgonia.Node // updates of a layer's state, by the parameter's name
}

// Build builds the expression. Its value may have any shape; with gradients it must be a scalar that depends on every leaf
// that is not fixed.
func Build[T ops.Float](e Expression[T], gradients bool) (_ *Built[T], err error) {
	defer caught(&err)
	b := &Builder[T]{graph: gorgonia.NewGraph(), updates: map[string]*gorgonia.Node{}}
	n, err := e(b)
	if err != nil {
		return nil, err
	}
	built := &Built[T]{Graph: b.graph, Dtype: dtypeOf[T](), Leaves: b.leaves, Value: n, Modes: b.asked, Updates: b.updates}
	if gradients {
		if err := built.differentiate(); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// caught turns a panic into an error: Gorgonia panics on some malformed expressions.
func caught(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("building the graph: %v", r)
	}
}

func (b *Built[T]) differentiate() error {
	var leaves []*Leaf[T]
	var wrt gorgonia.Nodes
	for _, l := range b.Leaves {
		if !l.Fixed {
			leaves, wrt = append(leaves, l), append(wrt, l.Node)
		}
	}
	nodes, err := gorgonia.Grad(b.Value, wrt...)
	if err != nil {
		return fmt.Errorf("differentiating: %w", err)
	}
	for i, l := range leaves {
		if !nodes[i].Shape().Eq(l.Node.Shape()) {
			return fmt.Errorf("%s: gradient of shape %v, want %v", l.Name, nodes[i].Shape(), l.Node.Shape())
		}
		l.Derivative = nodes[i]
	}
	return nil
}

// Graph is one expression on Gorgonia's machine, ready to run any number of times.
type Graph[T ops.Float] struct {
	Leaves []*Leaf[T]

	shape   []int
	output  gorgonia.Value
	updates map[string]*gorgonia.Value
	machine gorgonia.VM
}

// Compile builds the expression as [Build] does and prepares it to run.
func Compile[T ops.Float](e Expression[T], gradients bool) (_ *Graph[T], err error) {
	defer caught(&err)
	b, err := Build(e, gradients)
	if err != nil {
		return nil, err
	}
	g := &Graph[T]{Leaves: b.Leaves, shape: slices.Clone(b.Value.Shape()), updates: map[string]*gorgonia.Value{}}
	gorgonia.Read(b.Value, &g.output) // later instructions overwrite the value of an inner node
	for _, l := range b.Leaves {
		if l.Derivative != nil {
			gorgonia.Read(l.Derivative, &l.gradient)
		}
	}
	for name, n := range b.Updates {
		g.updates[name] = new(gorgonia.Value)
		gorgonia.Read(n, g.updates[name])
	}
	g.machine = gorgonia.NewTapeMachine(b.Graph)
	return g, nil
}

// Evaluate returns the value of the expression and its shape, from one run.
func Evaluate[T ops.Float](e Expression[T]) (value []T, shape []int, err error) {
	g, err := Compile(e, false)
	if err != nil {
		return nil, nil, err
	}
	defer g.Close()
	if err := g.Run(); err != nil {
		return nil, nil, err
	}
	return g.Output(), g.shape, nil
}

// Run computes the value and the gradients from the leaves' values.
func (g *Graph[T]) Run() error {
	g.machine.Reset() // without it RunAll does nothing
	return g.machine.RunAll()
}

// Shape returns the shape of the value.
func (g *Graph[T]) Shape() []int { return g.shape }

// Output returns a copy of the value, row-major.
func (g *Graph[T]) Output() []T { return slices.Clone(flat[T](g.output)) }

// Update returns a copy of the last run's update of a layer's state, by the parameter's name; nil if there is none. The
// leaf does not change.
func (g *Graph[T]) Update(name string) []T {
	if v := g.updates[name]; v != nil {
		return slices.Clone(flat[T](*v))
	}
	return nil
}

// Leaf returns the leaf of that name, nil when there is none.
func (g *Graph[T]) Leaf(name string) *Leaf[T] {
	for _, l := range g.Leaves {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Close closes the machine.
func (g *Graph[T]) Close() error { return g.machine.Close() }

// flat returns the elements of a value, nil if they are not of type T.
func flat[T ops.Float](v gorgonia.Value) []T {
	if v == nil {
		return nil
	}
	values, err := fromgraph.Elements[T](v)
	if err != nil {
		return nil
	}
	return values
}
