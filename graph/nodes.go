package graph

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
)

// input adds an input that the caller fills.
func (b *builder) input(name string, s ops.Sampler, shape ...int) *gorgonia.Node {
	n := b.leaf(name, shape)
	b.program.Inputs = append(b.program.Inputs, Input{Name: name, Node: n, Shape: slices.Clone(shape), Sampler: s})
	return n
}

func (b *builder) leaf(name string, shape []int) *gorgonia.Node {
	if len(shape) == 0 {
		return gorgonia.NewScalar(b.program.Graph, b.request.Dtype, gorgonia.WithName(name))
	}
	return gorgonia.NewTensor(b.program.Graph, b.request.Dtype, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// tap makes a node readable after a run.
func (b *builder) tap(name string, n *gorgonia.Node) error {
	if n == nil {
		return fmt.Errorf("%s: the expression is empty", name)
	}
	b.program.Taps = append(b.program.Taps, Tap{Name: name, Node: n, Shape: slices.Clone(n.Shape())})
	return nil
}

// parameter returns the node of a parameter and adds it at its first use.
func (b *builder) parameter(path string) (*gorgonia.Node, error) {
	if n, ok := b.nodes[path]; ok {
		return n, nil
	}
	p, err := b.model.Parameter(path)
	if err != nil {
		if of := b.model.transposeOf(path); of != "" {
			return b.transposed(path, of)
		}
		return nil, err
	}
	n := b.leaf(path, p.Shape)
	b.nodes[path] = n
	b.program.Parameters = append(b.program.Parameters, Binding{Parameter: p, Node: n})
	return n, nil
}

// transposed returns the node of the transpose of another parameter.
func (b *builder) transposed(path, of string) (*gorgonia.Node, error) {
	w, err := b.parameter(of)
	if err != nil {
		return nil, err
	}
	n, err := ops.Transpose(w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b.nodes[path] = n
	return n, nil
}

// flat returns x as (batch, values).
func flat(x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := x.Shape()
	if len(shape) == 2 {
		return x, nil
	}
	return ops.Reshape(x, shape[0], volume.Of(shape[1:]))
}
