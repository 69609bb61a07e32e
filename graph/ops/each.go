package ops

import (
	"errors"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// PerImage is a function of single images that is not made of other ops. Its calls may run side by side.
type PerImage struct {
	Name string  // with every attribute, exactly
	Out  []int   // the shape of one result
	Work float64 // about how many additions one image takes

	Float32 func(dst, image []float32)
	Float64 func(dst, image []float64)
	// The gradients write to dst what gradient, that of a result, gives the image.
	Gradient32 func(dst, image, gradient []float32)
	Gradient64 func(dst, image, gradient []float64)
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
		g := &parallel{
			name:   f.Name + "Grad",
			out:    in[0].Shape().Clone(),
			units:  batch,
			byUnit: []bool{true, true},
			work:   2 * f.Work * float64(batch),
			f32:    eachGradient(batch, f.Gradient32),
			f64:    eachGradient(batch, f.Gradient64),
		}
		n, err := g.apply(in[0], grad)
		return gorgonia.Nodes{n}, err
	}
	return o.apply(x)
}

func each[T Float](batch int, f func(dst, image []T)) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			f(part(dst, i, batch), part(in[0], i, batch))
		}
	}
}

func eachGradient[T Float](batch int, f func(dst, image, gradient []T)) units[T] {
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
