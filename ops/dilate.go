package ops

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	vector "tessera/kernel"
)

// dilateOp is the spec of [Dilate], dilateGradOp of its derivative, with inputs x, y = dilate(x) and the gradient of y.
// dilatePickOp is the spec of the transpose of the derivative: it maps x, y and v to the value of v at the neighbour that
// gave each maximum.
type (
	dilateOp struct {
		Shape  []int    // of one image
		Radius int      // of the disk, in pixels
		Others [][2]int // the offsets (dy, dx) of another element; nil for the disk
	}
	dilateGradOp dilateOp
	dilatePickOp dilateOp
)

// Dilate returns the flat grey-level dilation of every row of x, an image of that shape (height, width) or
// (height, width, channels), by the disk of that radius in pixels, d = {(dy,dx): dy*dy + dx*dx <= radius*radius}:
//
//	y(p) = max of x(p+o) over the offsets o in d for which p+o lies in the image
//
// The derivative is a subgradient: the gradient of each pixel goes to one neighbour that gave the maximum, to the nearest
// of several equal ones, and to the first in reading order of several nearest ones.
func Dilate(x *gorgonia.Node, shape []int, radius int) (*gorgonia.Node, error) {
	g, err := newDisk(shape, radius)
	return dilateRows(x, shape, g, err)
}

// DilateBy is [Dilate] with the given offsets (dy, dx) instead of those of a disk; (0, 0) must be one of them.
func DilateBy(x *gorgonia.Node, shape []int, offsets [][2]int) (*gorgonia.Node, error) {
	g, err := newElement(shape, offsets)
	return dilateRows(x, shape, g, err)
}

func dilateRows(x *gorgonia.Node, shape []int, g disk, err error) (*gorgonia.Node, error) {
	if err != nil {
		return nil, fmt.Errorf("dilate: %w", err)
	}
	if len(x.Shape()) != 2 || x.Shape()[1] != volume.Of(shape) {
		return nil, fmt.Errorf("dilate: got rows of shape %v, want images of shape %v", x.Shape(), shape)
	}
	return Blockwise{
		Spec:    g.spec,
		Rows:    true,
		Float32: dilate(g, vector.Float32),
		Float64: dilate(g, vector.Float64),
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(g.gradient().Apply(in[0], y, grad))
		},
	}.Apply(x)
}

// gradient maps x, y = dilate(x) and the gradient of y to the gradient of x.
func (d disk) gradient() Blockwise {
	return Blockwise{
		Spec:    dilateGradOp(d.spec),
		Rows:    true,
		Float32: dilateGrad(d, vector.Float32),
		Float64: dilateGrad(d, vector.Float64),
		Fixed:   []bool{true, true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := d.pick().Apply(in[0], in[1], grad)
			return gorgonia.Nodes{nil, nil, n}, err
		},
	}
}

// pick maps x, y = dilate(x) and v to the value of v at the neighbour that gave each maximum. It is the transpose of
// gradient, which is linear in the gradient of y.
func (d disk) pick() Blockwise {
	return Blockwise{
		Spec:    dilatePickOp(d.spec),
		Rows:    true,
		Float32: dilatePick(d, vector.Float32),
		Float64: dilatePick(d, vector.Float64),
		Fixed:   []bool{true, true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := d.gradient().Apply(in[0], in[1], grad)
			return gorgonia.Nodes{nil, nil, n}, err
		},
	}
}

// disk is a disk, or another element, over padded images of one shape. With the padding each offset of the disk is the same distance between
// elements for all pixels, and single calls of the vector kernels process whole images. The padding is reach rows above
// and below an image and reach columns after each row, which also precede the next row.
type disk struct {
	spec      dilateOp
	rows, row int   // of an image, and the values in one
	stride    int   // values in one padded row
	origin    int   // of the first pixel in the padded image
	padded    int   // values in a padded image
	offsets   []int // between values of a padded image, the centre's first
}

func newDisk(shape []int, radius int) (disk, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return disk{}, fmt.Errorf("shape %v: want (height, width) or (height, width, channels)", shape)
	}
	if most := max(shape[0], shape[1]); radius < 1 || radius > most {
		return disk{}, fmt.Errorf("radius: got %d, want from 1 to %d, the images' longer side", radius, most)
	}
	var list [][2]int
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if dy*dy+dx*dx <= radius*radius {
				list = append(list, [2]int{dy, dx})
			}
		}
	}
	return padded(dilateOp{Shape: slices.Clone(shape), Radius: radius}, radius, list), nil
}

func newElement(shape []int, offsets [][2]int) (disk, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return disk{}, fmt.Errorf("shape %v: want (height, width) or (height, width, channels)", shape)
	}
	if !slices.Contains(offsets, [2]int{}) {
		return disk{}, fmt.Errorf("offsets %v: want (0, 0) among them", offsets)
	}
	reach := 1
	for _, o := range offsets {
		reach = max(reach, o[0], -o[0], o[1], -o[1])
	}
	if most := max(shape[0], shape[1]); reach > most {
		return disk{}, fmt.Errorf("offsets: got a distance of %d, want at most %d, the images' longer side", reach, most)
	}
	return padded(dilateOp{Shape: slices.Clone(shape), Others: slices.Clone(offsets)}, reach, offsets), nil
}

// padded lays out padded images for offsets that reach that far.
func padded(spec dilateOp, reach int, offsets [][2]int) disk {
	channels := 1
	if len(spec.Shape) == 3 {
		channels = spec.Shape[2]
	}
	d := disk{spec: spec, rows: spec.Shape[0], row: spec.Shape[1] * channels}
	margin := reach * channels
	d.stride = d.row + margin
	d.origin = reach*d.stride + margin
	d.padded = (d.rows+2*reach)*d.stride + margin
	list := slices.Clone(offsets)
	slices.SortStableFunc(list, func(a, b [2]int) int { return cmp.Compare(a[0]*a[0]+a[1]*a[1], b[0]*b[0]+b[1]*b[1]) })
	for _, o := range list {
		d.offsets = append(d.offsets, o[0]*d.stride+o[1]*channels)
	}
	return d
}

// span is the number of values of a padded image from the first pixel to the last.
func (d disk) span() int { return (d.rows-1)*d.stride + d.row }

// spread copies an image into the rows of a padded one, or of its span.
func spread[T Float](d disk, dst, image []T) {
	for y := range d.rows {
		copy(dst[y*d.stride:], image[y*d.row:(y+1)*d.row])
	}
}

// gather is spread the other way.
func gather[T Float](d disk, image, src []T) {
	for y := range d.rows {
		copy(image[y*d.row:(y+1)*d.row], src[y*d.stride:])
	}
}

// padding is the memory of one goroutine for one image.
type padding[T Float] struct {
	x, dx                     []T // padded images; -inf lies around x
	y, rest, selected, picked []T // spans
}

func pool[T Float](d disk) *sync.Pool {
	return &sync.Pool{New: func() any {
		p := &padding[T]{x: make([]T, d.padded), dx: make([]T, d.padded),
			y: make([]T, d.span()), rest: make([]T, d.span()), selected: make([]T, d.span()), picked: make([]T, d.span())}
		for i := range p.x {
			p.x[i] = T(math.Inf(-1))
		}
		return p
	}}
}

func dilate[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			copy(p.y, p.x[d.origin:])
			for _, o := range d.offsets[1:] {
				k.Max(p.y, p.y, p.x[d.origin+o:])
			}
			gather(d, dst[at:at+block], p.y)
		}
	}
}

// dilateGrad maps x, y = dilate(x) and the gradient g of y to the gradient of x. An offset takes the remaining values of g
// at the pixels where x, shifted by the offset, is the maximum; the columns between rows have no values of g.
func dilateGrad[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			spread(d, p.y, in[1][at:at+block])
			spread(d, p.rest, in[2][at:at+block])
			clear(p.dx)
			for _, o := range d.offsets {
				dx := p.dx[d.origin+o:][:len(p.rest)]
				k.Eq(p.selected, p.y, p.x[d.origin+o:])
				k.Mul(p.selected, p.selected, p.rest)
				k.Add(dx, dx, p.selected)
				k.Sub(p.rest, p.rest, p.selected)
			}
			gather(d, dst[at:at+block], p.dx[d.origin:])
		}
	}
}

// dilatePick maps x, y = dilate(x) and v to v at the neighbours that gave the maxima, in the order of dilateGrad.
func dilatePick[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			spread(d, p.y, in[1][at:at+block])
			clear(p.dx)
			spread(d, p.dx[d.origin:], in[2][at:at+block])
			clear(p.picked)
			k.Fill(p.rest, 1) // 1 for pixels without a pick
			for _, o := range d.offsets {
				k.Eq(p.selected, p.y, p.x[d.origin+o:])
				k.Mul(p.selected, p.selected, p.rest)
				k.Sub(p.rest, p.rest, p.selected)
				k.Mul(p.selected, p.selected, p.dx[d.origin+o:])
				k.Add(p.picked, p.picked, p.selected)
			}
			gather(d, dst[at:at+block], p.picked)
		}
	}
}
