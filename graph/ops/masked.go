package ops

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// MaskedSoftmaxOp is the spec of [MaskedSoftmax]: the number of rows of x per sample, and their length. FirstPlacesOp
// is the spec of [FirstPlaces].
type (
	MaskedSoftmaxOp struct{ Rows, Length int }
	FirstPlacesOp   struct{ Of int }
)

// MaskedSoftmax returns the [Softmax] of x (batch, ..., n) over the elements of the last axis that the mask of the
// sample selects. mask has the shape (batch, n) and selects elements where it is above 1/2. The other elements of the
// result are exactly 0, and so are their derivatives. If a mask selects no element, the result is 0. The mask has no
// gradient.
func MaskedSoftmax(x, mask *gorgonia.Node) (*gorgonia.Node, error) {
	xs, ms := x.Shape(), mask.Shape()
	if len(xs) < 2 || len(ms) != 2 || ms[0] != xs[0] || ms[1] != xs[len(xs)-1] {
		return nil, fmt.Errorf("masked softmax: got shapes %v and %v, want (batch, ..., n) and (batch, n)", xs, ms)
	}
	s := MaskedSoftmaxOp{volume.Of(xs[1 : len(xs)-1]), ms[1]}
	return Unitwise{
		Spec:     s,
		Out:      xs.Clone(),
		Units:    xs[0],
		ByUnit:   []bool{true, true},
		Fixed:    []bool{false, true},
		Division: ir.ByUnits,
		Work:     20 * float64(xs.TotalSize()),
		Float32:  fastMaskedSoftmax(s),
		Float64:  maskedSoftmax[float64](s),
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := softmaxGrad().Apply(y, grad) // the gradient is 0 where y is 0
			return gorgonia.Nodes{g, nil}, err
		},
	}.Apply(x, mask)
}

func maskedSoftmax[T Float](s MaskedSoftmaxOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from * s.Rows; i < to*s.Rows; i++ {
			row := in[0][i*s.Length:][:s.Length]
			softmaxWhere(dst[i*s.Length:][:s.Length], row, in[1][i/s.Rows*s.Length:][:s.Length])
		}
	}
}

// fastMaskedSoftmax computes the same bytes as maskedSoftmax[float32].
func fastMaskedSoftmax(s MaskedSoftmaxOp) units[float32] {
	return func(dst []float32, in [][]float32, _ []float32, from, to int) {
		for i := from; i < to; i++ {
			mask := in[1][i*s.Length:][:s.Length]
			fastSoftmaxWhere(dst, in[0], i*s.Rows, s.Rows, s.Length, func(int) []float32 { return mask })
		}
	}
}

// fastSoftmaxWhere computes the same bytes as softmaxWhere for rows [first, first+rows) of y and x, of which mask(i) selects
// elements of row i: exp(-Inf) is exactly 0.
func fastSoftmaxWhere(y, x []float32, first, rows, length int, mask func(row int) []float32) {
	out := float32(math.Inf(-1))
	y, x = y[first*length:][:rows*length], x[first*length:][:rows*length]
	for i := range rows {
		row, selected := y[i*length:][:length], mask(first+i)
		for j, v := range x[i*length:][:length] {
			if row[j] = out; selected[j] > 0.5 {
				row[j] = v
			}
		}
	}
	fastSoftmax(y, [][]float32{y}, length)
	for i := range rows {
		if y[i*length] != y[i*length] { // nothing is selected, or a value is not finite
			softmaxWhere(y[i*length:][:length], x[i*length:][:length], mask(first+i))
		}
	}
}

// softmaxWhere sets y to the softmax of the elements of x that the mask selects, and to 0 elsewhere.
func softmaxWhere[T Float](y, x, mask []T) {
	top := T(math.Inf(-1))
	for j, v := range x {
		if mask[j] > 0.5 {
			top = max(top, v)
		}
	}
	var sum T
	for j, v := range x {
		if y[j] = 0; mask[j] > 0.5 {
			y[j] = T(math.Exp(float64(v - top)))
			sum += y[j]
		}
	}
	for j := range y {
		if mask[j] > 0.5 {
			y[j] /= sum
		}
	}
}

// FirstPlaces returns a matrix with one row of `of` elements for each length n in lengths (batch, 1): the first n
// elements are 1, the others 0. Lengths have no gradient.
func FirstPlaces(lengths *gorgonia.Node, of int) (*gorgonia.Node, error) {
	if s := lengths.Shape(); s.TotalSize() != s[0] || of < 1 {
		return nil, fmt.Errorf("first places: got lengths of shape %v and %d places, want one length for each sample and at least one place", s, of)
	}
	n, s := lengths.Shape()[0], FirstPlacesOp{of}
	return Unitwise{
		Spec:     s,
		Out:      tensor.Shape{n, of},
		Units:    n,
		ByUnit:   []bool{true},
		Fixed:    []bool{true},
		Division: ir.ByUnits,
		Float32:  firstPlaces[float32](s),
		Float64:  firstPlaces[float64](s),
	}.Apply(lengths)
}

func firstPlaces[T Float](s FirstPlacesOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			for j := range s.Of {
				dst[i*s.Of+j] = 0
				if T(j) < in[0][i] {
					dst[i*s.Of+j] = 1
				}
			}
		}
	}
}
