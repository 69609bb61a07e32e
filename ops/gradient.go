package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
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

// Affine recognises an encoder of one dense layer: h is an elementwise function of z = x w + b, where w and b do not depend
// on x. It returns x w and w; ok is false for any other h or for an unknown op.
func Affine(x, h *gorgonia.Node) (z, w *gorgonia.Node, ok bool) {
	a := &affine{depends: map[*gorgonia.Node]bool{x: true}}
	if !a.dependent(h) || !a.follow(h, map[*gorgonia.Node]bool{}) || a.product == nil {
		return nil, nil, false
	}
	return a.product, fromgraph.Children(a.product)[1], true
}

// affine searches for the single product between an input and an output.
type affine struct {
	depends map[*gorgonia.Node]bool // on the input's values; of the nodes that were asked for
	product *gorgonia.Node
}

// dependent reports whether n depends on the input's values, not only on its size.
func (a *affine) dependent(n *gorgonia.Node) bool {
	d, known := a.depends[n]
	if known {
		return d
	}
	if op, ok := n.Op().(gorgonia.SDOp); ok {
		children := fromgraph.Children(n)
		for i, sloped := range op.DiffWRT(len(children)) {
			d = sloped && a.dependent(children[i]) || d
		}
	}
	a.depends[n] = d
	return d
}

// follow walks from a node that depends on the input down to the product, over elementwise ops.
func (a *affine) follow(n *gorgonia.Node, seen map[*gorgonia.Node]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	if a.multiplies(n) {
		if a.product == nil {
			a.product = n
		}
		return a.product == n
	}
	if !elementByElement(n) {
		return false
	}
	for _, child := range fromgraph.Children(n) {
		if a.dependent(child) && !(slices.Equal(child.Shape(), n.Shape()) && a.follow(child, seen)) {
			return false
		}
	}
	return true
}

// multiplies reports whether n is the product of the input, or of a view of it, and a node that does not depend on it.
func (a *affine) multiplies(n *gorgonia.Node) bool {
	id := fromgraph.Identify(n.Op())
	if id.Class != fromgraph.MatMul || id.Batched || id.TransA || id.TransB {
		return false
	}
	children := fromgraph.Children(n)
	images := children[0]
	for images.Op() != nil {
		if o, ok := images.Op().(ir.Described); !ok || o.IR() != (ir.Reshape{}) {
			return false
		}
		images = fromgraph.Children(images)[0]
	}
	return a.dependent(images) && !a.dependent(children[1])
}

// elementByElement reports whether every element of n is computed from one element of each input.
func elementByElement(n *gorgonia.Node) bool {
	if k, ok := n.Op().(Kernel); ok {
		return k.Block(n.Shape()) == 1
	}
	return fromgraph.Identify(n.Op()).Class == fromgraph.Pointwise
}
