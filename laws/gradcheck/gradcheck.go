// Package gradcheck compares Gorgonia's gradients with central differences, in float64 on Gorgonia's tape machine: the
// check does not use the engine.
package gradcheck

import (
	"fmt"
	"math"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/engine/ir/fromgraph"
	"tessera/internal/panics"
	"tessera/internal/random"
)

// Tolerance is the maximum relative error of a correct gradient. Central differences in float64 have errors of about 1e-9.
const Tolerance = 1e-6

// step is the step of the central differences, for values of about 1. Inputs must be further away from kinks than this.
const step = 1e-5

// Check returns an error, which names the run and the largest deviation, unless every gradient of the scalar expression agrees
// with central differences within [Tolerance]. The first run checks every element of a leaf, or 12 random elements of a larger
// leaf, relative to the leaf's largest derivative. The second run, with the values of every leaf in reversed order, checks one
// direction of every leaf, in which all elements change. The third run, with the values of the first, must give bit-identical
// gradients, because a run must not depend on earlier runs.
func Check(e Expression[float64]) error {
	g, err := Compile(e, true)
	if err != nil {
		return err
	}
	defer g.Close()
	value, err := Compile(e, false)
	if err != nil {
		return err
	}
	defer value.Close()
	first, err := checked(g, value, elements)
	if err != nil {
		return fmt.Errorf("run 1: %w", err)
	}
	reverse(g, value)
	if _, err := checked(g, value, direction); err != nil {
		return fmt.Errorf("run 2: %w", err)
	}
	reverse(g, value)
	third, err := gradients(g)
	if err != nil {
		return err
	}
	for i, l := range g.Leaves {
		if !slices.Equal(first[i], third[i]) {
			return fmt.Errorf("%s: gradient %v in run 1, %v in run 3, of the same values", l.Name, first[i], third[i])
		}
	}
	return nil
}

// reverse reverses the order of the values of all leaves, which thus stay in their domain and away from kinks.
func reverse(graphs ...*Graph[float64]) {
	for _, g := range graphs {
		for _, l := range g.Leaves {
			slices.Reverse(l.Values)
		}
	}
}

// checked returns the gradients of g for its values. It calls agree to compare them with differences of value, the same
// expression without gradients.
func checked(g, value *Graph[float64], agree func(value *Graph[float64], l *Leaf[float64], analytic []float64) error) ([][]float64, error) {
	analytic, err := gradients(g)
	if err != nil {
		return nil, err
	}
	for i, l := range value.Leaves {
		if g.Leaves[i].Fixed || g.Leaves[i].Estimated {
			continue
		}
		if err := agree(value, l, analytic[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return analytic, nil
}

// gradients runs g and returns copies of its gradients, nil for fixed leaves.
func gradients(g *Graph[float64]) ([][]float64, error) {
	if err := g.Run(); err != nil {
		return nil, err
	}
	list := make([][]float64, len(g.Leaves))
	for i, l := range g.Leaves {
		list[i] = slices.Clone(l.Gradient())
		if !l.Fixed && len(list[i]) != len(l.Values) {
			return nil, fmt.Errorf("%s: gradient of %d values, want %d", l.Name, len(list[i]), len(l.Values))
		}
	}
	return list, nil
}

// sampled is the maximum number of elements of a leaf that are checked one by one.
const sampled = 12

// elements compares a leaf's gradient with central differences, relative to the largest element of either. Of a leaf with more
// than [sampled] elements it compares only a random sample; [direction] covers all elements.
func elements(g *Graph[float64], l *Leaf[float64], analytic []float64) error {
	drawn := random.Stream(Seed, "elements of "+l.Name, 0).Perm(len(l.Values))
	drawn = drawn[:min(len(drawn), sampled)]
	slices.Sort(drawn)
	numeric := make([]float64, len(l.Values))
	towards := make([]float64, len(l.Values))
	var largest float64
	for _, v := range analytic {
		largest = max(largest, math.Abs(v))
	}
	for _, j := range drawn {
		towards[j] = 1
		var err error
		if numeric[j], err = difference(g, l, towards, analytic[j], Tolerance*largest); err != nil {
			return err
		}
		towards[j] = 0
		largest = max(largest, math.Abs(numeric[j]))
	}
	for _, j := range drawn {
		if d := math.Abs(analytic[j] - numeric[j]); !(d <= Tolerance*largest) {
			return fmt.Errorf("element %d: gradient %v, central difference %v: relative error %.1e, want <= %.0e",
				j, analytic[j], numeric[j], d/largest, Tolerance)
		}
	}
	return nil
}

// direction compares a leaf's derivative along a random direction with a central difference, relative to the sum of the
// absolute contributions of its elements.
func direction(g *Graph[float64], l *Leaf[float64], analytic []float64) error {
	r := random.Stream(Seed, "direction of "+l.Name, 0)
	towards := make([]float64, len(l.Values))
	var want, scale float64
	for j := range towards {
		towards[j] = r.NormFloat64()
		want += towards[j] * analytic[j]
		scale += math.Abs(towards[j] * analytic[j])
	}
	numeric, err := difference(g, l, towards, want, Tolerance*scale)
	if err != nil {
		return err
	}
	scale = max(scale, math.Abs(numeric))
	if d := math.Abs(want - numeric); !(d <= Tolerance*scale) {
		return fmt.Errorf("along a random direction: gradient %v, central difference %v: relative error %.1e, want <= %.0e",
			want, numeric, d/scale, Tolerance)
	}
	return nil
}

// difference returns the central difference of g's value when the leaf changes along a direction. The step is relative to the
// largest element that changes. If the result differs from want by more than the tolerance, for example because the third
// derivative is large, difference returns the fourth-order difference of four points, whose error is proportional to the
// fourth power of the step.
func difference(g *Graph[float64], l *Leaf[float64], towards []float64, want, tolerance float64) (float64, error) {
	start := slices.Clone(l.Values)
	defer copy(l.Values, start)
	central := func(h float64) (float64, error) {
		var f [2]float64
		for k, sign := range [2]float64{1, -1} {
			for j, v := range start {
				l.Values[j] = v + sign*h*towards[j]
			}
			if err := g.Run(); err != nil {
				return 0, err
			}
			f[k] = g.Output()[0]
		}
		return (f[0] - f[1]) / (2 * h), nil
	}
	h := step
	for j, v := range start {
		if towards[j] != 0 {
			h = max(h, step*math.Abs(v))
		}
	}
	near, err := central(h)
	if err != nil || math.Abs(near-want) <= tolerance {
		return near, err
	}
	far, err := central(2 * h)
	return (4*near - far) / 3, err
}

// Builder collects the leaves of an expression while it is built.
type Builder[T ops.Float] struct {
	graph     *gorgonia.ExprGraph
	leaves    []*Leaf[T]
	noises    int
	asked     bool                      // a layer has read whether the graph is built for training
	published []*gorgonia.Node          // values that a layer has published, in order
	updates   map[string]*gorgonia.Node // updates of a layer's state, by the parameter's name
}

// Node returns the node of the i-th leaf.
func (b *Builder[T]) Node(i int) *gorgonia.Node { return b.leaves[i].Node }

// Published returns the values that the layers have published so far, in order.
func (b *Builder[T]) Published() []*gorgonia.Node { return slices.Clone(b.published) }

// Leaf is an input of an expression. A run reads Values, which the caller may change in place between runs.
type Leaf[T ops.Float] struct {
	Name      string
	Values    []T
	Fixed     bool        // the leaf is not differentiated: a target, a mask
	Estimated bool        // the gradient is declared to be an estimate, and is not compared with differences
	Parameter bool        // the leaf is a parameter of a layer
	Batch     bool        // the leaf is an input of a loss whose first axis is the batch
	Used      bool        // the layer reads the parameter
	Sampler   ops.Sampler // sampler of the values; nil for data

	Node       *gorgonia.Node
	Derivative *gorgonia.Node // derivative of the expression with respect to the leaf; nil if not requested

	gradient gorgonia.Value
}

// Gradient returns the derivatives of the expression with respect to the leaf, nil before a run and for fixed leaves.
func (l *Leaf[T]) Gradient() []T { return flat[T](l.gradient) }

// Leaf adds an input with its initial values; its name must be unique.
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

// dtypeOf returns Gorgonia's name for T.
func dtypeOf[T ops.Float]() tensor.Dtype {
	var zero T
	return tensor.New(tensor.FromScalar(zero)).Dtype()
}

// Expression builds a value from leaves.
type Expression[T ops.Float] func(b *Builder[T]) (*gorgonia.Node, error)

// Built is an expression in a separate graph, which any back end can run.
type Built[T ops.Float] struct {
	Graph   *gorgonia.ExprGraph
	Dtype   tensor.Dtype
	Leaves  []*Leaf[T]
	Value   *gorgonia.Node
	Modes   bool                      // a layer reads whether the graph is built for training, so that training and inference can differ
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
		*err = fmt.Errorf("building the graph: %w", panics.Of(r))
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
	if len(wrt) == 0 { // of a function of whole numbers
		return nil
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
	output  *gorgonia.Value // allocated separately, because Gorgonia never frees a machine if its program points to the struct that contains the machine
	updates map[string]*gorgonia.Value
	machine gorgonia.VM
}

// Compile builds the expression like [Build], and prepares the graph for runs.
func Compile[T ops.Float](e Expression[T], gradients bool) (_ *Graph[T], err error) {
	defer caught(&err)
	b, err := Build(e, gradients)
	if err != nil {
		return nil, err
	}
	g := &Graph[T]{Leaves: b.Leaves, shape: slices.Clone(b.Value.Shape()), output: new(gorgonia.Value), updates: map[string]*gorgonia.Value{}}
	gorgonia.Read(b.Value, g.output) // later instructions overwrite the value of an inner node
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
func (g *Graph[T]) Output() []T { return slices.Clone(flat[T](*g.output)) }

// Update returns a copy of the last run's update of a layer's state, by the parameter's name; nil if there is none. The
// leaf does not change.
func (g *Graph[T]) Update(name string) []T {
	if v := g.updates[name]; v != nil {
		return slices.Clone(flat[T](*v))
	}
	return nil
}

// Leaf returns the named leaf, nil if there is none.
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
