package ops

import (
	"errors"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// PerImage is a function of single images that does not consist of other ops. It must be safe for concurrent use.
type PerImage struct {
	Spec any     // identifies the function, like [Blockwise].Spec
	Out  []int   // the shape of one result
	Work float64 // approximate number of additions per image

	Float32 func(dst, image []float32)
	Float64 func(dst, image []float64)
	// Pull writes to dst the gradient of the image for v, the gradient of the result. Push writes the derivative of the
	// result in the direction v. Each is the transpose of the other.
	Pull32, Push32 func(dst, image, v []float32)
	Pull64, Push64 func(dst, image, v []float64)
}

// EachPullOp is the spec of the derivative of [Each], with inputs images and gradients of the results; EachPushOp of its
// transpose, with inputs images and directions. Of is the spec of the function.
type (
	EachPullOp struct{ Of any }
	EachPushOp struct{ Of any }
)

// Each applies f to every image of x, whose first axis is the batch. It may be differentiated any number of times; the
// second derivative of f is defined as 0.
func Each(x *gorgonia.Node, f PerImage) (*gorgonia.Node, error) {
	if len(x.Shape()) < 2 {
		return nil, errors.New("each: want a batch of images")
	}
	e := eachImage{f, x.Shape().Clone(), slices.Concat(tensor.Shape{x.Shape()[0]}, f.Out)}
	o := &Unitwise{
		Spec:     f.Spec,
		Out:      e.out,
		Units:    e.in[0],
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Work:     f.Work * float64(e.in[0]),
		Float32:  each(e, f.Float32),
		Float64:  each(e, f.Float64),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(e.pull(in[0], grad))
		},
	}
	return o.Apply(x)
}

// eachImage is a function of images with the shapes of its batches.
type eachImage struct {
	PerImage
	in, out tensor.Shape
}

func (e eachImage) pull(x, v *gorgonia.Node) (*gorgonia.Node, error) {
	return e.linear(EachPullOp{e.Spec}, e.in, e.Pull32, e.Pull64, e.push).Apply(x, v)
}

func (e eachImage) push(x, v *gorgonia.Node) (*gorgonia.Node, error) {
	return e.linear(EachPushOp{e.Spec}, e.out, e.Push32, e.Push64, e.pull).Apply(x, v)
}

// linear is an op that is linear in its second input, with its transpose.
func (e eachImage) linear(spec any, out tensor.Shape, f32 func(dst, image, v []float32), f64 func(dst, image, v []float64),
	transpose func(x, v *gorgonia.Node) (*gorgonia.Node, error)) *Unitwise {
	return &Unitwise{
		Spec:     spec,
		Out:      out,
		Units:    e.in[0],
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Work:     2 * e.Work * float64(e.in[0]),
		Float32:  eachLinear(e, out, f32),
		Float64:  eachLinear(e, out, f64),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(transpose(in[0], grad))
		},
	}
}

func each[T Float](e eachImage, f func(dst, image []T)) units[T] {
	image, result := volume.Of(e.in[1:]), volume.Of(e.out[1:])
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			f(nth(dst, i, result), nth(in[0], i, image))
		}
	}
}

// eachLinear computes images of shape out: those of e or its results; its second input are the others.
func eachLinear[T Float](e eachImage, out tensor.Shape, f func(dst, image, v []T)) units[T] {
	image, to, other := volume.Of(e.in[1:]), volume.Of(out[1:]), volume.Of(e.out[1:])
	if out.Eq(e.out) {
		other = image
	}
	return func(dst []T, in [][]T, _ []T, first, last int) {
		for i := first; i < last; i++ {
			f(nth(dst, i, to), nth(in[0], i, image), nth(in[1], i, other))
		}
	}
}

// nth is the i-th of the slices of x of that size.
func nth[T Float](x []T, i, size int) []T { return x[i*size : (i+1)*size] }
