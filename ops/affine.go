package ops

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
	"tessera/engine/ir/fromgraph"
)

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
