package graph

import (
	"errors"
	"fmt"

	"tessera/engine/ir"
	"tessera/engine/ir/fromgraph"
)

// Module implements [ir.Program]: it returns the program in the typed intermediate representation of back ends and exporters. Its parameters share
// their data with the model.
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
		m.Parameters = append(m.Parameters, ir.Parameter{Name: b.Path, Shape: b.Shape, Data: b.Data, Trainable: b.Trainable})
		t.Leaf(b.Node, ir.Leaf{Kind: ir.ParameterLeaf, Index: i}, b.Path, b.Shape)
	}
	if err := p.wanted(m, t); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return m, nil
}

// wanted adds the taps, the gradients and the updates.
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
		i := p.Listed(u.Parameter)
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
