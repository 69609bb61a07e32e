package ops

import (
	"errors"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PerImage is a function of single images that is not made of other ops: a piecewise linear one, since its second derivative
// is taken to be 0. Its calls may run side by side.
type PerImage struct {
	Name string  // with every attribute, exactly
	Out  []int   // the shape of one result
	Work float64 // about how many additions one image takes

	Float32 func(dst, image []float32)
	Float64 func(dst, image []float64)
	// The gradients write to dst what gradient, that of a result, gives the image.
	Gradient32 func(dst, image, gradient []float32)
	Gradient64 func(dst, image, gradient []float64)
	// The tangents write to dst how the result changes when the image moves in a direction: the transposes of the gradients,
	// and what is needed to differentiate those.
	Tangent32 func(dst, image, direction []float32)
	Tangent64 func(dst, image, direction []float64)
}

// Each applies f to every image of x, whose first axis is the batch.
func Each(x *gorgonia.Node, f PerImage) (*gorgonia.Node, error) {
	if len(x.Shape()) < 2 {
		return nil, errors.New("each: want a batch of images")
	}
	batch := x.Shape()[0]
	o := &parallel{
		name:   f.Name,
		out:    slices.Concat(tensor.Shape{batch}, f.Out),
		units:  batch,
		byUnit: []bool{true},
		work:   f.Work * float64(batch),
		f32:    each(batch, f.Float32),
		f64:    each(batch, f.Float64),
	}
	o.derivative = func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		n, err := f.gradient(in[0], grad)
		return gorgonia.Nodes{n}, err
	}
	return o.apply(x)
}

// gradient is the derivative of Each, for the gradient of its result.
func (f PerImage) gradient(x, grad *gorgonia.Node) (*gorgonia.Node, error) {
	return f.linear("Grad", x.Shape().Clone(), f.Gradient32, f.Gradient64, f.tangent).apply(x, grad)
}

// tangent is the transpose of gradient.
func (f PerImage) tangent(x, direction *gorgonia.Node) (*gorgonia.Node, error) {
	return f.linear("Tangent", slices.Concat(x.Shape()[:1], f.Out), f.Tangent32, f.Tangent64, f.gradient).apply(x, direction)
}

// linear is an op of images and of what it is linear in.
func (f PerImage) linear(name string, out tensor.Shape, f32 func(dst, image, v []float32), f64 func(dst, image, v []float64), transpose binary) *parallel {
	batch := out[0]
	return &parallel{
		name:   f.Name + name,
		out:    out,
		units:  batch,
		byUnit: []bool{true, true},
		work:   2 * f.Work * float64(batch),
		f32:    eachLinear(batch, f32),
		f64:    eachLinear(batch, f64),
		fixed:  []bool{true, false},
		derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := transpose(in[0], grad)
			return gorgonia.Nodes{nil, n}, err
		},
	}
}

func each[T Float](batch int, f func(dst, image []T)) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			f(part(dst, i, batch), part(in[0], i, batch))
		}
	}
}

func eachLinear[T Float](batch int, f func(dst, image, v []T)) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			f(part(dst, i, batch), part(in[0], i, batch), part(in[1], i, batch))
		}
	}
}

// part is the i-th of n equal parts.
func part[T Float](x []T, i, n int) []T {
	size := len(x) / n
	return x[i*size : (i+1)*size]
}
