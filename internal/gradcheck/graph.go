// Package gradcheck compares the gradients that Gorgonia derives with central differences, in float64 and on Gorgonia's
// own machine, so that nothing of what it checks checks itself.
package gradcheck

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
)

// Builder collects the leaves of an expression while it is built.
type Builder[T ops.Float] struct {
	graph   *gorgonia.ExprGraph
	leaves  []*Leaf[T]
	noises  int
	updates map[string]*gorgonia.Value // what a layer assigns to its state, by the parameter's name
}

// Node returns the node of the i-th leaf.
func (b *Builder[T]) Node(i int) *gorgonia.Node { return b.leaves[i].node }

// Leaf is an input of an expression. A run reads Values, which the caller may change in place between runs.
type Leaf[T ops.Float] struct {
	Name   string
	Values []T
	Fixed  bool // not differentiated: a target, a mask

	node     *gorgonia.Node
	gradient gorgonia.Value
}

// Gradient returns the derivatives of the expression with respect to the leaf, nil before a run and for fixed leaves.
func (l *Leaf[T]) Gradient() []T { return flat[T](l.gradient) }

// Leaf adds an input with its first values; the name must be new.
func (b *Builder[T]) Leaf(name string, shape []int, values []T, fixed bool) *gorgonia.Node {
	l := &Leaf[T]{Name: name, Values: slices.Clone(values), Fixed: fixed}
	l.node = gorgonia.NewTensor(b.graph, tensor.New(tensor.FromScalar(values[0])).Dtype(), len(shape),
		gorgonia.WithShape(shape...), gorgonia.WithName(name),
		gorgonia.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(l.Values))))
	b.leaves = append(b.leaves, l)
	return l.node
}

// Expression builds a value from leaves.
type Expression[T ops.Float] func(b *Builder[T]) (*gorgonia.Node, error)

// Graph is one expression, ready to run as often as wanted.
type Graph[T ops.Float] struct {
	Leaves []*Leaf[T]

	shape   []int
	output  gorgonia.Value
	updates map[string]*gorgonia.Value
	machine gorgonia.VM
}

// Compile builds the expression. Its value may have any shape; with gradients it must be a scalar that every leaf which
// is not fixed reaches.
func Compile[T ops.Float](e Expression[T], gradients bool) (g *Graph[T], err error) {
	defer func() { // Gorgonia panics on some malformed expressions
		if r := recover(); r != nil {
			g, err = nil, fmt.Errorf("building the graph: %v", r)
		}
	}()
	b := &Builder[T]{graph: gorgonia.NewGraph(), updates: map[string]*gorgonia.Value{}}
	n, err := e(b)
	if err != nil {
		return nil, err
	}
	g = &Graph[T]{Leaves: b.leaves, shape: slices.Clone(n.Shape()), updates: b.updates}
	gorgonia.Read(n, &g.output) // an inner node's own value is clobbered by what runs after it
	if gradients {
		if err := g.differentiate(n); err != nil {
			return nil, err
		}
	}
	g.machine = gorgonia.NewTapeMachine(b.graph)
	return g, nil
}

func (g *Graph[T]) differentiate(n *gorgonia.Node) error {
	var leaves []*Leaf[T]
	var wrt gorgonia.Nodes
	for _, l := range g.Leaves {
		if !l.Fixed {
			leaves, wrt = append(leaves, l), append(wrt, l.node)
		}
	}
	nodes, err := gorgonia.Grad(n, wrt...)
	if err != nil {
		return fmt.Errorf("differentiating: %w", err)
	}
	for i, l := range leaves {
		if !nodes[i].Shape().Eq(l.node.Shape()) {
			return fmt.Errorf("%s: gradient of shape %v, want %v", l.Name, nodes[i].Shape(), l.node.Shape())
		}
		gorgonia.Read(nodes[i], &l.gradient)
	}
	return nil
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

// Update returns a copy of what the last run assigns to a layer's state, by the parameter's name; nil when it assigns
// nothing. The leaf itself keeps its values.
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

// Close ends the machine.
func (g *Graph[T]) Close() error { return g.machine.Close() }

func flat[T ops.Float](v gorgonia.Value) []T {
	if v == nil {
		return nil
	}
	switch d := v.Data().(type) {
	case []T:
		return d
	case T:
		return []T{d}
	}
	return nil
}
