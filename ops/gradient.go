package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir/fromgraph"
)

// Gradient returns the derivatives of the scalar y with respect to nodes of its graph, inputs or not, as expressions that
// can be differentiated again. gorgonia.Grad alone does not allow this: it marks every visited node, and a later call for a
// loss that contains the first result stops at the marks. Gradient therefore runs it on a copy of y's expression and
// repeats the added nodes in y's graph.
func Gradient(y *gorgonia.Node, wrt ...*gorgonia.Node) (gorgonia.Nodes, error) {
	there := newTranscript(gorgonia.NewGraph())
	back := newTranscript(y.Graph())
	var leaves gorgonia.Nodes
	for _, n := range wrt {
		leaves = append(leaves, there.leaf(n))
	}
	copied, err := there.of(y)
	if err != nil {
		return nil, fmt.Errorf("gradient: %w", err)
	}
	for n, m := range there.known {
		back.known[m] = n
	}
	grads, err := gorgonia.Grad(copied, leaves...)
	if err != nil {
		return nil, fmt.Errorf("gradient: %w", err)
	}
	for i, g := range grads {
		if grads[i], err = back.of(g); err != nil {
			return nil, fmt.Errorf("gradient: %w", err)
		}
	}
	return grads, nil
}

// Gradient is [Gradient] with respect to one node.
func (c *Chain) Gradient(y, wrt *gorgonia.Node) *gorgonia.Node {
	return c.Do("gradient", func() (*gorgonia.Node, error) {
		grads, err := Gradient(y, wrt)
		if err != nil {
			return nil, err
		}
		return grads[0], nil
	})
}

// transcript repeats expressions of one graph in another.
type transcript struct {
	graph *gorgonia.ExprGraph
	known map[*gorgonia.Node]*gorgonia.Node
}

func newTranscript(g *gorgonia.ExprGraph) *transcript {
	return &transcript{graph: g, known: map[*gorgonia.Node]*gorgonia.Node{}}
}

// of returns the copy of n in the other graph, adding missing nodes.
func (t *transcript) of(n *gorgonia.Node) (*gorgonia.Node, error) {
	if m, ok := t.known[n]; ok {
		return m, nil
	}
	if fromgraph.Identify(n.Op()).Class == fromgraph.Constant {
		t.known[n] = t.graph.AddNode(gorgonia.NewConstant(n.Value()))
		return t.known[n], nil
	}
	if n.Op() == nil {
		return t.leaf(n), nil
	}
	var children gorgonia.Nodes
	for _, child := range fromgraph.Children(n) {
		m, err := t.of(child)
		if err != nil {
			return nil, err
		}
		children = append(children, m)
	}
	m, err := gorgonia.ApplyOp(n.Op(), children...)
	if err != nil {
		return nil, err
	}
	t.known[n] = m
	return m, nil
}

// leaf represents n as an input.
func (t *transcript) leaf(n *gorgonia.Node) *gorgonia.Node {
	name := gorgonia.WithName(fmt.Sprintf("node %d", n.ID()))
	if shape := n.Shape(); len(shape) == 0 {
		t.known[n] = gorgonia.NewScalar(t.graph, n.Dtype(), name)
	} else {
		t.known[n] = gorgonia.NewTensor(t.graph, n.Dtype(), len(shape), gorgonia.WithShape(shape.Clone()...), name)
	}
	return t.known[n]
}
