package morph

import (
	"fmt"
	"math"
	"slices"
)

// Filter applies one operator to images of one shape, one at a time. It owns buffers: one goroutine at a time may use it.
type Filter struct {
	grid      grid
	op        Operator
	widths    []int    // of a disk
	offsets   []Offset // of another element
	a, b      []int32  // one image each
	row, wide []int32  // one row each
}

// NewFilter returns the filter of an operator by the disk of that radius, for images of shape (height, width) or
// (height, width, channels).
func NewFilter(op Operator, radius int, shape []int) (*Filter, error) {
	return NewFilterBy(op, Disk, radius, shape)
}

// NewFilterBy is [NewFilter] with another structuring element.
func NewFilterBy(op Operator, element Element, radius int, shape []int) (*Filter, error) {
	if !slices.Contains(op.Choices(), string(op)) {
		return nil, fmt.Errorf("morph: unknown operator %q, want one of %v", op, op.Choices())
	}
	if radius < 0 {
		return nil, fmt.Errorf("morph: radius %d, want >= 0", radius)
	}
	g, err := newGrid(shape)
	if err != nil {
		return nil, err
	}
	f := newFilter(op, radius, g)
	if !element.IsDisk() {
		f.offsets, err = element.Offsets(min(radius, g.height+g.width))
	}
	return f, err
}

func newFilter(op Operator, radius int, g grid) *Filter {
	// A radius beyond the image's diagonal reaches every pixel, as the diagonal itself does.
	radius = min(radius, g.height+g.width)
	stride := g.width * g.channels
	return &Filter{
		grid: g, op: op, widths: halfWidths(radius),
		a: make([]int32, g.pixels()), b: make([]int32, g.pixels()),
		row: make([]int32, stride), wide: make([]int32, stride),
	}
}

// Image writes the filtered image src to dst, which may be src itself. Both must have the filter's shape.
func (f *Filter) Image(dst, src []float32) {
	first := int32(0)
	if f.op == Erosion || f.op == Opening {
		first = flip
	}
	toKeys(f.a, src, first)
	f.dilate(first == flip)
	last := first
	if f.op == Opening || f.op == Closing {
		for i, k := range f.b {
			f.a[i] = k ^ flip
		}
		f.dilate(first != flip)
		last = first ^ flip
	}
	fromKeys(dst, f.b, last)
}

// dilate writes the dilation of the keys a to b; eroding, by the reflected element, as an erosion needs it.
func (f *Filter) dilate(eroding bool) {
	if f.offsets != nil {
		f.grid.dilateBy(f.b, f.a, f.offsets, eroding)
		return
	}
	f.grid.dilate(f.b, f.a, f.widths, f.row, f.wide)
}

// flip, xored to a key, reverses the order of all keys: erosion is dilation of the flipped image, flipped back.
const flip int32 = -1

// key maps a float to an integer of the same order (-0 below +0, NaN outermost): integer maxima need no branches.
func key(v float32) int32 {
	bits := int32(math.Float32bits(v))
	return bits ^ (bits >> 31 & math.MaxInt32)
}

// unkey undoes key.
func unkey(k int32) float32 { return math.Float32frombits(uint32(k ^ (k >> 31 & math.MaxInt32))) }

// toKeys writes the keys of src, xored with flipped.
func toKeys(dst []int32, src []float32, flipped int32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = key(v) ^ flipped
	}
}

// fromKeys undoes toKeys.
func fromKeys(dst []float32, src []int32, flipped int32) {
	src = src[:len(dst)]
	for i, k := range src {
		dst[i] = unkey(k ^ flipped)
	}
}
