package ops

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
)

// Tap defines one value of the output of a filter along an axis: the sum over k of Weights[k] x(From+k).
type Tap struct {
	From    int
	Weights []float64
}

// Separable is a linear filter of images (height, width, channels) along both axes, the same for all channels:
//
//	y(i,j,c) = sum over k, l of Rows[i].Weights[k] Columns[j].Weights[l] x(Rows[i].From+k, Columns[j].From+l, c)
//
// A Separable is also the spec of the op.
type Separable struct {
	In            [3]int
	Rows, Columns []Tap // one tap for every row and for every column of y
}

// Apply filters every row of x (batch, height*width*channels); the result has rows of len(Rows)*len(Columns)*channels
// values. It can be differentiated any number of times.
func (s Separable) Apply(x *gorgonia.Node) (*gorgonia.Node, error) {
	if err := s.check(x); err != nil {
		return nil, fmt.Errorf("separable: %w", err)
	}
	return Each(x, PerImage{
		Spec:    s,
		Out:     []int{len(s.Rows) * len(s.Columns) * s.In[2]},
		Work:    s.work(),
		Float32: func(dst, image []float32) { filter(s, dst, image) }, Float64: func(dst, image []float64) { filter(s, dst, image) },
		Pull32: func(dst, _, v []float32) { scatter(s, dst, v) }, Pull64: func(dst, _, v []float64) { scatter(s, dst, v) },
		Push32: func(dst, _, v []float32) { filter(s, dst, v) }, Push64: func(dst, _, v []float64) { filter(s, dst, v) },
	})
}

func (s Separable) check(x *gorgonia.Node) error {
	if len(x.Shape()) != 2 || x.Shape()[1] != volume.Of(s.In[:]) {
		return fmt.Errorf("got rows of shape %v, want images of shape %v", x.Shape(), s.In)
	}
	for axis, taps := range [][]Tap{s.Rows, s.Columns} {
		if len(taps) == 0 {
			return errors.New("got a result without pixels")
		}
		for _, t := range taps {
			if t.From < 0 || t.From+len(t.Weights) > s.In[axis] {
				return fmt.Errorf("a filter from %d to %d leaves the %d pixels of its axis", t.From, t.From+len(t.Weights), s.In[axis])
			}
		}
	}
	return nil
}

// work returns the number of products for one image.
func (s Separable) work() float64 {
	rows, columns := 0, 0
	for _, t := range s.Rows {
		rows += len(t.Weights)
	}
	for _, t := range s.Columns {
		columns += len(t.Weights)
	}
	return float64(s.In[2]) * float64(rows*s.In[1]+columns*len(s.Rows))
}

// filter writes the filtered image x to y, row by row. It filters first along the height.
func filter[T Float](s Separable, y, x []T) {
	width := s.In[1] * s.In[2]
	row := make([]T, width)
	for i, r := range s.Rows {
		clear(row)
		for k, weight := range r.Weights {
			for n, v := range x[(r.From+k)*width:][:width] {
				row[n] += T(weight) * v
			}
		}
		out := y[i*len(s.Columns)*s.In[2]:]
		for j, col := range s.Columns {
			filterPixel(out[j*s.In[2]:][:s.In[2]], row, col, s.In[2])
		}
	}
}

// filterPixel writes one pixel of the result; row is a row of the image that is already filtered along the height.
func filterPixel[T Float](pixel, row []T, t Tap, channels int) {
	for c := range pixel {
		var sum T
		for l, weight := range t.Weights {
			sum += T(weight) * row[(t.From+l)*channels+c]
		}
		pixel[c] = sum
	}
}

// scatter computes the transpose of filter: it maps y to x.
func scatter[T Float](s Separable, x, y []T) {
	width := s.In[1] * s.In[2]
	row := make([]T, width)
	clear(x)
	for i, r := range s.Rows {
		clear(row)
		in := y[i*len(s.Columns)*s.In[2]:]
		for j, col := range s.Columns {
			for c, v := range in[j*s.In[2]:][:s.In[2]] {
				for l, weight := range col.Weights {
					row[(col.From+l)*s.In[2]+c] += T(weight) * v
				}
			}
		}
		for k, weight := range r.Weights {
			for n, v := range row {
				x[(r.From+k)*width+n] += T(weight) * v
			}
		}
	}
}
