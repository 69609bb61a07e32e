// Package morph implements flat grey-level mathematical morphology on images. [Apply] and [Filter] compute an [Operator]
// (dilation, erosion, opening, closing) by a disk or another [Element]. [Decomposition] computes the additive morphological
// decompositions, which are based on reconstruction.
//
// Images are float32, row-major, of shape (height, width) or (height, width, channels); channels are processed separately.
// Pixels outside of an image are ignored: a maximum or minimum runs over the existing neighbours. For disks this equals the
// mirrored border of scipy and scikit-image, because a mirrored pixel always lies in the disk.
package morph

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// Operator names a flat morphological operator.
type Operator string

// The operators; B is the structuring element.
const (
	Dilation Operator = "dilation" // maximum over B
	Erosion  Operator = "erosion"  // minimum over B
	Opening  Operator = "opening"  // erosion, then dilation
	Closing  Operator = "closing"  // dilation, then erosion
)

func (Operator) Choices() []string {
	return []string{string(Dilation), string(Erosion), string(Opening), string(Closing)}
}

// Apply applies the operator with a structuring element, usually [Disk], of the given radius in pixels to every image; a radius of
// 0 changes nothing. It returns an error for an unknown operator or element, a negative radius, a shape other than that of an
// image, or an incomplete image.
func Apply(op Operator, element Element, radius int, images []float32, shape []int) ([]float32, error) {
	if _, err := NewFilter(op, element, radius, shape); err != nil {
		return nil, err
	}
	g, n, err := gridOf(images, shape)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(images))
	pixels := g.pixels()
	team.For(n, grain, func(from, to int) {
		f, _ := NewFilter(op, element, radius, shape) // checked above
		for i := from; i < to; i++ {
			f.Image(out[i*pixels:(i+1)*pixels], images[i*pixels:(i+1)*pixels])
		}
	})
	return out, nil
}

// grain is the number of images per task. It is large enough that the cost of allocating a filter's buffers is negligible.
const grain = 32

// grid is the shape of one image, channels innermost.
type grid struct{ height, width, channels int }

func (g grid) pixels() int { return g.height * g.width * g.channels }

// gridOf returns the grid of an image and the number n of images, or an error if the last image is incomplete.
func gridOf(values []float32, shape []int) (g grid, n int, err error) {
	if g, err = newGrid(shape); err != nil {
		return g, 0, err
	}
	if len(values)%g.pixels() != 0 {
		return g, 0, fmt.Errorf("morph: got %d values, want whole images of shape %v", len(values), shape)
	}
	return g, len(values) / g.pixels(), nil
}

func newGrid(shape []int) (grid, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return grid{}, fmt.Errorf("morph: shape %v: want (height, width) or (height, width, channels), all > 0", shape)
	}
	if _, ok := volume.Within(shape, math.MaxInt32); !ok {
		return grid{}, fmt.Errorf("morph: shape %v: want fewer than 2^31 values", shape)
	}
	g := grid{height: shape[0], width: shape[1], channels: 1}
	if len(shape) == 3 {
		g.channels = shape[2]
	}
	return g, nil
}

// Element names a flat structuring element B: a set of pixels (dy, dx) that contains its origin (0, 0).
//
//	disk          dy*dy + dx*dx <= radius*radius; "" is also the disk
//	square        |dy|, |dx| <= radius
//	row, column   a line of 2 radius + 1 pixels
//	011 010 000   rows of 0 and 1 from top to bottom, odd in number and length, with a 1 in the centre; the radius is ignored
//
// Dilation by B is the maximum of x(p-b) over b in B, erosion the minimum of x(p+b). An opening is thus an erosion followed by
// a dilation by the same element (Serra, Image Analysis and Mathematical Morphology, 1982).
type Element string

// The named elements.
const (
	Disk   Element = "disk"
	Square Element = "square"
	Row    Element = "row"
	Column Element = "column"
)

// Offset is the position of a pixel of an element: DY rows below and DX columns to the right of the origin.
type Offset struct{ DY, DX int }

// IsDisk reports whether the element is the disk.
func (e Element) IsDisk() bool { return e == "" || e == Disk }

func (e Element) Check() error {
	_, err := e.Offsets(1)
	return err
}

// Offsets lists the pixels in reading order. It returns an error for an unknown name, invalid rows or a negative radius.
func (e Element) Offsets(radius int) (list []Offset, err error) {
	if radius < 0 {
		return nil, fmt.Errorf("morph: radius %d, want >= 0", radius)
	}
	has := func(dy, dx int) bool { return dy*dy+dx*dx <= radius*radius }
	height, width := radius, radius
	switch e {
	case "", Disk:
	case Square:
		has = func(int, int) bool { return true }
	case Row:
		height, has = 0, func(int, int) bool { return true }
	case Column:
		width, has = 0, func(int, int) bool { return true }
	default:
		rows := strings.Fields(string(e))
		if err := checkRows(e, rows); err != nil {
			return nil, err
		}
		height, width = len(rows)/2, len(rows[0])/2
		has = func(dy, dx int) bool { return rows[height+dy][width+dx] == '1' }
	}
	for dy := -height; dy <= height; dy++ {
		for dx := -width; dx <= width; dx++ {
			if has(dy, dx) {
				list = append(list, Offset{dy, dx})
			}
		}
	}
	return list, nil
}

func checkRows(e Element, rows []string) error {
	wrong := fmt.Errorf(`morph: element %q, want "disk", "square", "row", "column", or rows of 0 and 1 like "010 111 010": an odd number of rows `+
		`of one odd length, with a 1 in the centre`, string(e))
	if len(rows)%2 == 0 || len(rows[0])%2 == 0 {
		return wrong
	}
	for _, row := range rows {
		if len(row) != len(rows[0]) || strings.Trim(row, "01") != "" {
			return wrong
		}
	}
	if rows[len(rows)/2][len(rows[0])/2] != '1' {
		return wrong
	}
	return nil
}

// dilateBy writes the maximum of src at p-b, or p+b if reflected, over the offsets b to dst.
func (g grid) dilateBy(dst, src []int32, offsets []Offset, reflected bool) {
	for i := range dst {
		dst[i] = outside
	}
	stride := g.width * g.channels
	for _, o := range offsets {
		dy, dx := -o.DY, -o.DX
		if reflected {
			dy, dx = o.DY, o.DX
		}
		from, to := max(0, -dx), min(g.width, g.width-dx) // columns whose neighbour exists
		if from >= to {
			continue
		}
		for y := max(0, -dy); y < min(g.height, g.height-dy); y++ {
			there := (y+dy)*stride + dx*g.channels
			raise(dst[y*stride+from*g.channels:y*stride+to*g.channels], src[there+from*g.channels:there+to*g.channels])
		}
	}
}

// Filter applies one operator to images of one shape, one at a time. It reuses buffers and is not safe for concurrent use.
type Filter struct {
	grid      grid
	op        Operator
	widths    []int    // half widths of the disk's rows
	offsets   []Offset // pixels of another element; nil for a disk
	a, b      []int32  // one image each
	row, wide []int32  // one row each
}

// NewFilter returns the filter for an operator with a structuring element of the given radius and images of shape (height, width)
// or (height, width, channels).
func NewFilter(op Operator, element Element, radius int, shape []int) (*Filter, error) {
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
	// Height + width is at least the diagonal: a disk of this radius already covers the whole image.
	radius = min(radius, g.height+g.width)
	stride := g.width * g.channels
	return &Filter{
		grid: g, op: op, widths: halfWidths(radius),
		a: make([]int32, g.pixels()), b: make([]int32, g.pixels()),
		row: make([]int32, stride), wide: make([]int32, stride),
	}
}

// Image filters the image src and writes the result to dst, which may be src itself. Both must have the filter's shape.
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

// dilate writes the dilation of the keys a to b. If eroding is true, it uses the reflected element, as an erosion requires.
func (f *Filter) dilate(eroding bool) {
	if f.offsets != nil {
		f.grid.dilateBy(f.b, f.a, f.offsets, eroding)
		return
	}
	f.grid.dilate(f.b, f.a, f.widths, f.row, f.wide)
}

// flip reverses the order of all keys by xor. Erosion is dilation of the flipped keys, flipped back.
const flip int32 = -1

// key maps a float to an integer with the same order (-0 below +0, NaN outermost), because integer maxima need no branches.
func key(v float32) int32 {
	bits := int32(math.Float32bits(v))
	return bits ^ (bits >> 31 & math.MaxInt32)
}

func unkey(k int32) float32 { return math.Float32frombits(uint32(k ^ (k >> 31 & math.MaxInt32))) }

// toKeys writes the keys of src, xored with flipped.
func toKeys(dst []int32, src []float32, flipped int32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = key(v) ^ flipped
	}
}

// fromKeys writes the floats of the keys src, after xor with flipped.
func fromKeys(dst []float32, src []int32, flipped int32) {
	src = src[:len(dst)]
	for i, k := range src {
		dst[i] = unkey(k ^ flipped)
	}
}

// halfWidths returns the largest dx in each row dy = 0..r of the disk {(dx,dy): dx*dx + dy*dy <= r*r}. The widths decrease
// from r to 0. The disk of radius 1 is the 3x3 cross.
func halfWidths(radius int) []int {
	return lists.Of(radius+1, func(dy int) int { return int(math.Sqrt(float64(radius*radius - dy*dy))) })
}

// outside is the key of a pixel outside the image. It is below the key of every number.
const outside = math.MinInt32

// dilate writes the dilation of src by the disk with the given half widths to dst; row and wide are buffers of one row. For
// each row it computes the maxima over windows of increasing width and combines them with the rows above and below at which
// the disk has that width: O(radius) steps per pixel.
func (g grid) dilate(dst, src []int32, widths []int, row, wide []int32) {
	radius := len(widths) - 1
	if radius == 0 {
		copy(dst, src)
		return
	}
	if radius == 1 {
		g.dilateCross(dst, src)
		return
	}
	for i := range dst {
		dst[i] = outside
	}
	stride := g.width * g.channels
	for y := range g.height {
		copy(row, src[y*stride:(y+1)*stride])
		for width, dy := 0, radius; ; width++ {
			for ; dy >= 0 && widths[dy] == width; dy-- {
				if y-dy >= 0 {
					raise(dst[(y-dy)*stride:(y-dy+1)*stride], row)
				}
				if dy > 0 && y+dy < g.height {
					raise(dst[(y+dy)*stride:(y+dy+1)*stride], row)
				}
			}
			if width == radius {
				break
			}
			widen(wide, row, g.channels)
			row, wide = wide, row
		}
	}
}

// raise sets each a[i] to the maximum of a[i] and b[i].
func raise(a, b []int32) {
	b = b[:len(a)]
	for i, v := range b {
		a[i] = max(a[i], v)
	}
}

// widen writes the maximum of each value and its two neighbours in the row (at distance step) to dst.
func widen(dst, src []int32, step int) {
	copy(dst, src)
	if len(src) > step {
		raise(dst[:len(src)-step], src[step:])
		raise(dst[step:], src[:len(src)-step])
	}
}

// dilateCross is dilate for radius 1, the study's element, in one pass: less than half of the time.
func (g grid) dilateCross(dst, src []int32) {
	stride := g.width * g.channels
	for y := range g.height {
		mid := src[y*stride : (y+1)*stride]
		up, down := mid, mid
		if y > 0 {
			up = src[(y-1)*stride : y*stride]
		}
		if y < g.height-1 {
			down = src[(y+1)*stride : (y+2)*stride]
		}
		crossRow(dst[y*stride:(y+1)*stride], up, mid, down, g.channels)
	}
}

// crossRow writes the maximum over the cross for one row; left and right neighbours are step values away.
func crossRow(dst, up, mid, down []int32, step int) {
	n := len(dst)
	up, mid, down = up[:n], mid[:n], down[:n]
	if step == 1 { // three neighbouring values stay in registers
		left, centre := mid[0], mid[0]
		for i, right := range mid[1:] {
			dst[i] = max(max(up[i], down[i]), max(left, right), centre)
			left, centre = centre, right
		}
		dst[n-1] = max(max(up[n-1], down[n-1]), left, centre)
		return
	}
	widen(dst, mid, step)
	raise(dst, up)
	raise(dst, down)
}
