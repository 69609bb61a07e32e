package engine

import (
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph"
	"tessera/ops"
)

// lowering translates nodes into values.
type lowering struct {
	program *graph.Program
	leaves  map[*gorgonia.Node]*value
	values  map[*gorgonia.Node]*value
}

// lower translates what the program wants: its taps, its gradients, its updates, in this order.
func lower(p *graph.Program) (*module, error) {
	l := &lowering{program: p, leaves: map[*gorgonia.Node]*value{}, values: map[*gorgonia.Node]*value{}}
	for i, in := range p.Inputs {
		l.leaves[in.Node] = &value{op: leaf{inputLeaf, i}, shape: in.Shape, name: in.Name}
	}
	for i, b := range p.Parameters {
		l.leaves[b.Node] = &value{op: leaf{parameterLeaf, i}, shape: b.Shape, name: b.Path}
	}
	for _, u := range p.Updates {
		if p.Listed(u.Parameter) < 0 {
			return nil, fmt.Errorf("engine: update of %s, which the program does not list", u.Parameter.Path)
		}
	}
	m := &module{}
	for _, b := range p.Parameters {
		m.trained = append(m.trained, b.Gradient != nil)
	}
	for _, n := range wantedNodes(p) {
		v, err := l.node(n)
		if err != nil {
			return nil, err
		}
		m.wanted = append(m.wanted, v)
	}
	m.rebuild(func(v *value) *value { return v })
	return m, nil
}

// wantedNodes lists the taps, the gradients that exist and the updates.
func wantedNodes(p *graph.Program) []*gorgonia.Node {
	var nodes []*gorgonia.Node
	for _, t := range p.Taps {
		nodes = append(nodes, t.Node)
	}
	for _, b := range p.Parameters {
		if b.Gradient != nil {
			nodes = append(nodes, b.Gradient)
		}
	}
	for _, u := range p.Updates {
		nodes = append(nodes, u.Node)
	}
	return nodes
}

// node returns the value of n, lowering what it is computed from first.
func (l *lowering) node(n *gorgonia.Node) (*value, error) {
	if v, ok := l.values[n]; ok {
		return v, nil
	}
	if v, ok := l.leaves[n]; ok {
		return v, nil
	}
	var args []*value
	for it := n.Graph().From(n.ID()); it.Next(); { // children in order, duplicates kept
		a, err := l.node(it.Node().(*gorgonia.Node))
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	v, err := l.op(n, args)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", n.Name(), err)
	}
	l.values[n] = v
	return v, nil
}

// op translates one operation. Its Go type and its text identify it: both are fixed by the pinned version and guarded
// by a test.
func (l *lowering) op(n *gorgonia.Node, args []*value) (*value, error) {
	shape := slices.Clone([]int(n.Shape()))
	if n.Op() == nil || strings.Contains(fmt.Sprintf("%T", n.Op()), "constant") {
		return l.constant(n, shape)
	}
	v := &value{op: opaque{n}, args: args, shape: shape}
	if !l.native(n, args) {
		return v, nil
	}
	if k, ok := n.Op().(ops.Kernel); ok && size(shape) > 0 {
		return kernelValue(k, shape, args), nil
	}
	if _, ok := n.Op().(ops.Transposition); ok {
		return &value{op: transpose{swapped}, args: args, shape: shape}, nil
	}
	if p, ok := n.Op().(ops.Parallel); ok {
		return unitwiseValue(p, shape, args), nil
	}
	if _, ok := n.Op().(ops.View); ok {
		return reshaped(args[0], shape), nil
	}
	text := n.Op().String()
	switch fmt.Sprintf("%T", n.Op()) {
	case "gorgonia.elemBinOp":
		name, _, _ := strings.Cut(text, " ")
		if p, ok := primitiveNamed(name); ok {
			return point(p, shape, args...), nil
		}
	case "gorgonia.elemUnaryOp", "gorgonia.maxBetween", "gorgonia.minBetween", "*gorgonia.maxBetween", "*gorgonia.minBetween":
		if p, ok := primitiveNamed(text); ok && primitiveInfo[p].args == len(args) {
			return point(p, shape, args...), nil
		}
	case "gorgonia.linAlgBinOp":
		if w := matrixProduct(text, args, shape); w != nil {
			return w, nil
		}
	case "gorgonia.sumOp":
		return reduce(sum, strings.TrimPrefix(text, "Σ"), args[0], shape), nil
	case "*gorgonia.maxOp", "gorgonia.maxOp":
		return reduce(largest, strings.TrimPrefix(text, "MaxAlong"), args[0], shape), nil
	case "gorgonia.reshapeOp":
		return reshaped(args[0], shape), nil
	case "*gorgonia.repeatOp":
		if w := repeated(args[0], shape); w != nil {
			return w, nil
		}
	case "gorgonia.sizeOp":
		var size float64
		if _, err := fmt.Sscanf(text, "SizeOf=%g", &size); err == nil {
			return &value{op: constant{size}, shape: shape}, nil
		}
	case "gorgonia.transposeOp":
		if axes, ok := transposedAxes(text); ok && len(axes) == len(shape) {
			return &value{op: transpose{axesText(axes)}, args: args, shape: shape}, nil
		}
	}
	return v, nil
}

// native reports whether every value around n is a tensor or scalar of the program's precision that the engine holds
// as numbers; an op on anything else stays opaque.
func (l *lowering) native(n *gorgonia.Node, args []*value) bool {
	if n.Dtype() != l.program.Dtype {
		return false
	}
	for _, a := range args {
		if o, ok := a.op.(opaque); ok && o.node.Dtype() != l.program.Dtype {
			return false
		}
	}
	return true
}

// constant translates a leaf that the program does not list: its value is fixed.
func (l *lowering) constant(n *gorgonia.Node, shape []int) (*value, error) {
	if n.Value() == nil {
		return nil, fmt.Errorf("is an input without a value that the program does not list")
	}
	if n.Dtype() == l.program.Dtype {
		switch d := n.Value().Data().(type) {
		case float32:
			return &value{op: constant{float64(d)}, shape: shape}, nil
		case float64:
			return &value{op: constant{d}, shape: shape}, nil
		}
	}
	return &value{op: opaque{n}, shape: shape}, nil
}

// repeated translates a repeat along an axis of length 1, nil when it is not one.
func repeated(a *value, shape []int) *value {
	from := a.shape
	if size(from) == 1 {
		return broadcasted(a, shape)
	}
	for len(from) < len(shape) { // a vector gains axes of length 1 at the end
		from = append(slices.Clone(from), 1)
	}
	for i := range shape {
		if from[i] != shape[i] && from[i] != 1 {
			return nil // every element repeated: not a broadcast
		}
	}
	a = reshaped(a, from)
	if slices.Equal(from, shape) {
		return a
	}
	return &value{op: broadcast{}, args: []*value{a}, shape: shape}
}

// matrixProduct translates the products of matrices and vectors by Gorgonia's text, nil for what it does not know.
func matrixProduct(text string, args []*value, shape []int) *value {
	a, b := args[0], args[1]
	op := product{transA: strings.HasPrefix(text, "Aᵀ"), transB: strings.HasSuffix(text, "Bᵀ")}
	switch fields := strings.Fields(text); {
	case len(fields) == 3 && fields[1] == "×" && strings.HasPrefix(fields[2], "B"): // matrix × matrix
	case len(fields) == 3 && fields[1] == "×××" && len(a.shape) == len(b.shape): // batched
	case len(fields) == 3 && fields[1] == "×": // matrix × vector
		b = reshaped(b, []int{size(b.shape), 1})
		op.transB = false
		return reshaped(&value{op: op, args: []*value{a, b}, shape: []int{size(shape), 1}}, shape)
	case len(fields) == 3 && fields[1] == "⊗": // outer product
		a, b = reshaped(a, []int{size(a.shape), 1}), reshaped(b, []int{1, size(b.shape)})
		return &value{op: product{}, args: []*value{a, b}, shape: shape}
	case len(fields) == 3 && fields[1] == "⋅": // inner product
		n := []int{size(a.shape)}
		return reduce(sum, "[0]", point(mul, n, reshaped(a, n), reshaped(b, n)), shape)
	default:
		return nil
	}
	if len(a.shape) < 2 || len(b.shape) != len(a.shape) {
		return nil
	}
	return &value{op: op, args: []*value{a, b}, shape: shape}
}

// transposedAxes reads the permutation from Gorgonia's text, "Aᵀ{1, 0}".
func transposedAxes(text string) ([]int, bool) {
	inside, ok := strings.CutPrefix(text, "Aᵀ{")
	if !ok {
		return nil, false
	}
	return axesOf(strings.ReplaceAll(strings.TrimSuffix(inside, "}"), ",", " ")), true
}

// dtypeOf is Gorgonia's name of T.
func dtypeOf[T graph.Float]() tensor.Dtype {
	var zero T
	return tensor.New(tensor.FromScalar(zero)).Dtype()
}
