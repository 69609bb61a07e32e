package graph

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/layers"
	"tessera/losses"
)

// value returns the node of a value. At its first use it adds the value and everything that it depends on.
func (b *builder) value(v value) (*gorgonia.Node, error) {
	if n := b.values[v]; n != nil {
		return n, nil
	}
	n, err := b.compute(v)
	if err != nil {
		return nil, err
	}
	b.values[v] = n
	return n, nil
}

// compute applies the layers of a value to their input.
func (b *builder) compute(v value) (*gorgonia.Node, error) {
	if v.name == losses.Code {
		return b.encode(v.pass)
	}
	from, list, ok := b.model.Layout.Stack(v.name)
	if !ok {
		return nil, b.model.lacksValue(v.name)
	}
	x, err := b.value(value{from, v.pass})
	if err != nil {
		return nil, err
	}
	if v.name == losses.Output && v.pass == (pass{stream: Images}) {
		return b.decode(x)
	}
	return b.stack(list, x, v.pass)
}

// encodes reports whether a value is computed from images, not from a given value.
func (b *builder) encodes(v value) bool {
	from, _, ok := b.model.Layout.Stack(v.name)
	return b.values[v] == nil && (v.name == losses.Code || ok && b.encodes(value{from, v.pass}))
}

// lacksValue is the error for a value that the model does not have.
func (m *Model) lacksValue(name string) error {
	if name == losses.Output {
		return errors.New("the model has no decoder: there is no output")
	}
	return fmt.Errorf("the model has no value %q: it has %q", name, m.Layout.Values())
}

// encode applies the encoder. The caller may have prepared the images for the first layer.
func (b *builder) encode(p pass) (*gorgonia.Node, error) {
	list, x := b.model.Layout.Encoder, b.streams[p.stream]
	if x == nil {
		return nil, fmt.Errorf("the stream %q is not read", p.stream)
	}
	if len(list) == 0 || !b.request.Prepared || p != (pass{stream: Images}) || b.needsImages() {
		return b.stack(list, x, p)
	}
	first, ok := list[0].Layer.(layers.Preparing)
	if !ok {
		return b.stack(list, x, p)
	}
	prepared := b.input(list[0].Path+".prepared", nil, append([]int{b.request.Batch}, list[0].Out...)...)
	b.program.Inputs[len(b.program.Inputs)-1].Preparation = first.Preparation()
	y, err := first.Rest(&scope{builder: b, placed: list[0], pass: p}, prepared)
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %w", list[0].Path, list[0].Kind, err)
	}
	return b.stack(list[1:], y, p)
}

// needsImages reports whether the images are distorted or a derivative is taken with respect to them. The graph then
// prepares them at every step.
func (b *builder) needsImages() bool {
	return slices.Contains(b.request.Want, InputGradient) || b.request.Training && (b.model.Spec.Distorted() ||
		slices.ContainsFunc(b.model.Spec.Losses, func(l config.Loss) bool { return l.Loss.Reads().Jacobian }))
}

// decode applies the decoder and stores the input of the layer that contains the atoms.
func (b *builder) decode(code *gorgonia.Node) (*gorgonia.Node, error) {
	list, i, p := b.model.Layout.Decoder, b.model.Layout.Dictionary(), pass{stream: Images}
	if i < 0 {
		return b.stack(list, code, p)
	}
	weighs, err := b.stack(list[:i], code, p)
	if err != nil {
		return nil, err
	}
	b.weighs = weighs
	return b.stack(list[i:], weighs, p)
}

// stack applies the layers to x in order and returns the result as (batch, values).
func (b *builder) stack(list []config.Placed, x *gorgonia.Node, p pass) (*gorgonia.Node, error) {
	for _, placed := range list {
		y, err := b.layer(placed, x, p)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", placed.Path, placed.Kind, err)
		}
		x = y
	}
	return flat(x)
}

// layer applies one layer and checks that the result agrees with its declaration.
func (b *builder) layer(placed config.Placed, x *gorgonia.Node, p pass) (*gorgonia.Node, error) {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("%s (%s): %v", placed.Path, placed.Kind, r))
		}
	}()
	known := len(b.program.Graph.AllNodes())
	y, err := placed.Layer.Apply(&scope{builder: b, placed: placed, pass: p}, x)
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("%s (%s)", placed.Path, placed.Kind)
	for _, n := range b.program.Graph.AllNodes()[known:] {
		b.program.layers[n] = at
	}
	if y == nil {
		return nil, errors.New("its Apply returns no node")
	}
	if want := append([]int{x.Shape()[0]}, placed.Out...); !slices.Equal(want, []int(y.Shape())) {
		return nil, fmt.Errorf("its Apply gives %v, but its OutputShape says %v", []int(y.Shape()), want)
	}
	return y, nil
}
