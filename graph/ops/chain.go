// Package ops builds the expressions of layers and losses. Most layers and losses need only a [Chain], which writes a formula
// as nested calls and collects the first error:
//
//	var c ops.Chain
//	return c.Mean(c.Square(c.Sub(output, target))), c.Err()
//
// Functions such as [Softmax] add single nodes that Gorgonia lacks. [Convolution], [Pooling], [Attention], [Patching] and
// [Separable] describe a geometry; their methods add the nodes. [Gradient] differentiates an expression.
//
// A new op needs kernels and a derivative. Declare it as a [Blockwise] if blocks of its elements are independent, as a
// [Unitwise] if larger parts of its output are, or with [Each] if it is a function of single images.
//
// The types whose names end in Op are the specs of the ops; the type of the spec identifies an op. Only exporters need them.
package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/ir/fromgraph"
)

// Chain collects the first error of a sequence of graph-building calls, so that a formula can be written as nested calls:
//
//	var c ops.Chain
//	return c.Mean(c.Square(c.Sub(output, target))), c.Err()
//
// After an error every call returns nil and does nothing. The zero value is ready for use.
type Chain struct{ err error }

// Err returns the first error.
func (c *Chain) Err() error { return c.err }

// Do runs f unless an earlier call failed; name describes f in the error.
func (c *Chain) Do(name string, f func() (*gorgonia.Node, error)) *gorgonia.Node {
	if c.err != nil {
		return nil
	}
	n, err := f()
	if err != nil {
		c.err = fmt.Errorf("%s: %w", name, err)
		return nil
	}
	return n
}

type unary = func(*gorgonia.Node) (*gorgonia.Node, error)
type binary = func(a, b *gorgonia.Node) (*gorgonia.Node, error)

func (c *Chain) unary(name string, f unary, x *gorgonia.Node) *gorgonia.Node {
	return c.Do(name, func() (*gorgonia.Node, error) { return f(x) })
}

func (c *Chain) binary(name string, f binary, a, b *gorgonia.Node) *gorgonia.Node {
	return c.Do(name, func() (*gorgonia.Node, error) { return f(a, b) })
}

// Add returns a + b, element by element. As in Sub, Mul and Div, the shapes are equal or one operand is a scalar.
func (c *Chain) Add(a, b *gorgonia.Node) *gorgonia.Node { return c.binary("add", gorgonia.Add, a, b) }

// Sub returns a - b.
func (c *Chain) Sub(a, b *gorgonia.Node) *gorgonia.Node { return c.binary("sub", gorgonia.Sub, a, b) }

// Mul returns a * b, element by element.
func (c *Chain) Mul(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("mul", gorgonia.HadamardProd, a, b)
}

// Div returns a / b, element by element.
func (c *Chain) Div(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("div", gorgonia.HadamardDiv, a, b)
}

// MatMul returns the matrix product of a (n, k) and b (k, m).
func (c *Chain) MatMul(a, b *gorgonia.Node) *gorgonia.Node {
	return c.binary("matmul", gorgonia.Mul, a, b)
}

// AddRow returns x (n, m) with row (m) added to each of its rows.
func (c *Chain) AddRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("add row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(x, row, nil, []byte{0}) })
}

// SubRow returns x (n, m) with row (m) subtracted from each of its rows.
func (c *Chain) SubRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("sub row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastSub(x, row, nil, []byte{0}) })
}

// MulRow returns x (n, m) with each of its rows multiplied by row (m), element by element.
func (c *Chain) MulRow(x, row *gorgonia.Node) *gorgonia.Node {
	return c.Do("mul row", func() (*gorgonia.Node, error) { return gorgonia.BroadcastHadamardProd(x, row, nil, []byte{0}) })
}

// Tile calls the function [Tile] and collects its error; times = 1 adds no node.
func (c *Chain) Tile(x *gorgonia.Node, times int) *gorgonia.Node {
	return c.Do("tile", func() (*gorgonia.Node, error) {
		if times == 1 {
			return x, nil
		}
		return Tile(x, times)
	})
}

// Fold calls the function [Fold] and collects its error; times = 1 adds no node.
func (c *Chain) Fold(x *gorgonia.Node, times int) *gorgonia.Node {
	return c.Do("fold", func() (*gorgonia.Node, error) {
		if times == 1 {
			return x, nil
		}
		return Fold(x, times)
	})
}

// Neg returns -x.
func (c *Chain) Neg(x *gorgonia.Node) *gorgonia.Node { return c.unary("neg", gorgonia.Neg, x) }

// Abs returns |x|. The derivative at 0 is 0 for tensors and 1 for scalars, because Gorgonia has two definitions of the sign.
func (c *Chain) Abs(x *gorgonia.Node) *gorgonia.Node { return c.unary("abs", gorgonia.Abs, x) }

// Square returns x * x.
func (c *Chain) Square(x *gorgonia.Node) *gorgonia.Node { return c.unary("square", gorgonia.Square, x) }

// Sqrt returns the square root of x. Its derivative at 0 is infinite: add a small number to an x that can be 0.
func (c *Chain) Sqrt(x *gorgonia.Node) *gorgonia.Node { return c.unary("sqrt", gorgonia.Sqrt, x) }

// InvSqrt returns 1 / sqrt(x), x > 0. It does not use Gorgonia's inverse square root, whose derivative is wrong.
func (c *Chain) InvSqrt(x *gorgonia.Node) *gorgonia.Node {
	return c.Do("inverse sqrt", func() (*gorgonia.Node, error) { return gorgonia.HadamardDiv(Scalar(x, 1), c.Sqrt(x)) })
}

// Exp returns e to the power of x, element by element.
func (c *Chain) Exp(x *gorgonia.Node) *gorgonia.Node { return c.unary("exp", gorgonia.Exp, x) }

// Log returns the natural logarithm of x. Use Log1p for the logarithm of 1 + x: Gorgonia would otherwise rewrite the
// expression and remove the sum from the graph, even if another node needs it.
func (c *Chain) Log(x *gorgonia.Node) *gorgonia.Node { return c.unary("log", gorgonia.Log, x) }

// Log1p returns log(1+x).
func (c *Chain) Log1p(x *gorgonia.Node) *gorgonia.Node { return c.unary("log1p", gorgonia.Log1p, x) }

// Lt returns 1 where x < v and 0 elsewhere. The derivative is 0.
func (c *Chain) Lt(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("lt", func() (*gorgonia.Node, error) { return gorgonia.Lt(x, Scalar(x, v), true) })
}

// Ramp calls the function [Ramp] and collects its error.
func (c *Chain) Ramp(x *gorgonia.Node, above, below float64) *gorgonia.Node {
	return c.Do("ramp", func() (*gorgonia.Node, error) { return Ramp(x, above, below) })
}

// Clip calls the function [Clip] and collects its error.
func (c *Chain) Clip(x *gorgonia.Node, low, high float64) *gorgonia.Node {
	return c.Do("clip", func() (*gorgonia.Node, error) { return Clip(x, low, high) })
}

// Scale returns v * x; a factor of 1 adds no node.
func (c *Chain) Scale(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("scale", func() (*gorgonia.Node, error) {
		if v == 1 {
			return x, nil
		}
		return gorgonia.HadamardProd(Scalar(x, v), x)
	})
}

// Shift returns x + v.
func (c *Chain) Shift(x *gorgonia.Node, v float64) *gorgonia.Node {
	return c.Do("shift", func() (*gorgonia.Node, error) { return gorgonia.Add(x, Scalar(x, v)) })
}

// From returns v - x.
func (c *Chain) From(v float64, x *gorgonia.Node) *gorgonia.Node {
	return c.Do("from", func() (*gorgonia.Node, error) { return gorgonia.Sub(Scalar(x, v), x) })
}

// Sum sums over the axes and removes them. Without axes it sums over all axes, one after the other, the last one first, and
// returns a scalar: Gorgonia sums sequentially, and a sequential sum of 100,000 float32 values loses three digits.
func (c *Chain) Sum(x *gorgonia.Node, axes ...int) *gorgonia.Node {
	return c.Do("sum", func() (n *gorgonia.Node, err error) {
		if len(axes) > 0 {
			return gorgonia.Sum(x, axes...)
		}
		for n = x; len(n.Shape()) > 0 && err == nil; {
			n, err = gorgonia.Sum(n, len(n.Shape())-1)
		}
		return n, err
	})
}

// Mean averages over the axes and removes them. Without axes it averages over all axes and returns a scalar. Shapes are known
// when the graph is built, so the count is a constant.
func (c *Chain) Mean(x *gorgonia.Node, axes ...int) *gorgonia.Node {
	sum := c.Sum(x, axes...)
	if c.err != nil {
		return nil
	}
	n := x.Shape().TotalSize()
	if len(axes) > 0 {
		n = 1
		for _, a := range axes {
			n *= x.Shape()[a]
		}
	}
	return c.Scale(sum, 1/float64(n))
}

// Reshape calls the function [Reshape] and collects its error; an unchanged shape adds no node.
func (c *Chain) Reshape(x *gorgonia.Node, shape ...int) *gorgonia.Node {
	return c.Do("reshape", func() (*gorgonia.Node, error) {
		if slices.Equal(x.Shape(), shape) { // tensor.Shape.Eq regards a column as a vector
			return x, nil
		}
		return Reshape(x, shape...)
	})
}

// Flatten returns x with the shape (batch, values): it joins all axes but the first.
func (c *Chain) Flatten(x *gorgonia.Node) *gorgonia.Node {
	if c.err != nil {
		return nil
	}
	shape := x.Shape()
	return c.Reshape(x, shape[0], tensor.Shape(shape[1:]).TotalSize())
}

// Scalar returns the constant v in the precision of the node like. A float32 graph does not accept float64 constants.
func Scalar(like *gorgonia.Node, v float64) *gorgonia.Node {
	if like.Dtype() == tensor.Float64 {
		return gorgonia.NewConstant(v)
	}
	return gorgonia.NewConstant(float32(v))
}

// Gradient returns the derivatives of the scalar y with respect to nodes of its graph, as expressions that can be
// differentiated again. gorgonia.Grad does not allow this: it marks every visited node, and a later call for a loss
// that contains its result stops at the marks. Gradient therefore differentiates a copy of y's expression and copies
// the added nodes back into y's graph.
func Gradient(y *gorgonia.Node, wrt ...*gorgonia.Node) (gorgonia.Nodes, error) {
	forth := newTranscript(gorgonia.NewGraph())
	back := newTranscript(y.Graph())
	var leaves gorgonia.Nodes
	for _, n := range wrt {
		leaves = append(leaves, forth.leaf(n))
	}
	copied, err := forth.of(y)
	if err != nil {
		return nil, fmt.Errorf("gradient: %w", err)
	}
	for n, m := range forth.known {
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

// Gradient calls the function [Gradient] with respect to one node and collects its error.
func (c *Chain) Gradient(y, wrt *gorgonia.Node) *gorgonia.Node {
	return c.Do("gradient", func() (*gorgonia.Node, error) {
		grads, err := Gradient(y, wrt)
		if err != nil {
			return nil, err
		}
		return grads[0], nil
	})
}

// transcript copies expressions from one graph to another.
type transcript struct {
	graph *gorgonia.ExprGraph
	known map[*gorgonia.Node]*gorgonia.Node
}

func newTranscript(g *gorgonia.ExprGraph) *transcript {
	return &transcript{graph: g, known: map[*gorgonia.Node]*gorgonia.Node{}}
}

// of returns the copy of n in the other graph. It adds the nodes that are missing there.
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

// leaf adds a copy of n as an input of the other graph.
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
// on x. It returns x w and w; ok is false if h is not of this form or contains an unknown op.
func Affine(x, h *gorgonia.Node) (z, w *gorgonia.Node, ok bool) {
	a := &affine{depends: map[*gorgonia.Node]bool{x: true}}
	if !a.dependent(h) || !a.follow(h, map[*gorgonia.Node]bool{}) || a.product == nil {
		return nil, nil, false
	}
	return a.product, fromgraph.Children(a.product)[1], true
}

// affine searches for the only product between an input and an output.
type affine struct {
	depends map[*gorgonia.Node]bool // cached results of dependent
	product *gorgonia.Node
}

// dependent reports whether n depends on the values of the input, not only on the number of images.
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

// follow reports whether n, a node that depends on the input, is an elementwise function of a single product. It sets
// a.product when it first reaches the product.
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

// multiplies reports whether n is the product of the input, or of a reshaped input, and a node that does not depend on
// the input.
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
