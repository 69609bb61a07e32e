package layers

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
)

// stackShapes returns the input shape of each layer of a block, then its output shape.
func stackShapes(block []Layer, in []int) ([][]int, error) {
	list := [][]int{in}
	for i, l := range block {
		if l == nil {
			return nil, InnerError{i, errors.New("is not known")}
		}
		out, err := l.OutputShape(list[i])
		if err != nil {
			return nil, InnerError{i, err}
		}
		list = append(list, out)
	}
	return list, nil
}

// stackParameters lists the parameters of the layers of a block, each with the index of its layer before its name.
func stackParameters(block []Layer, in []int) []Parameter {
	shapes, err := stackShapes(block, in)
	if err != nil {
		return nil // OutputShape returns the error
	}
	var all []Parameter
	for i, l := range block {
		for _, p := range l.Parameters(shapes[i]) {
			p.Name = innerName(i, p.Name)
			all = append(all, p)
		}
	}
	return all
}

// applyStack adds the layers of a block to the graph of x; kind names the block in errors.
func applyStack(kind string, block []Layer, s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	y := x
	for i, l := range block {
		inner := innerScope{Scope: s, index: i}
		if _, block := l.(Block); !block { // each of its layers decides by its own parameters
			inner.parameters = l.Parameters(y.Shape()[1:])
		}
		var err error
		if y, err = l.Apply(inner, y); err != nil {
			return nil, fmt.Errorf("%s: layers[%d]: %w", kind, i, err)
		}
	}
	return y, nil
}

// stackRange is the range of the values of a block.
func stackRange(block []Layer, in Interval) Interval {
	for _, l := range block {
		if l == nil {
			return Everything
		}
		in = OutputRange(l, in)
	}
	return in
}
