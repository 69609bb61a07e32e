package morph

import (
	"fmt"
	"strings"
)

// Element names a flat structuring element B: a set of pixels (dy, dx) around its origin, which belongs to it.
//
//	disk          dy*dy + dx*dx <= radius*radius; "" is the disk too
//	square        |dy|, |dx| <= radius
//	row, column   a line of 2 radius + 1 pixels
//	011 010 000   rows of 0 and 1 from top to bottom, of odd number and length, around a 1; the radius is not used
//
// With B, dilation is the maximum of x(p-b) over b in B and erosion the minimum of x(p+b), so that an opening is erosion, then
// dilation by the same element (Serra, Image Analysis and Mathematical Morphology, 1982).
type Element string

// The elements that have a name.
const (
	Disk   Element = "disk"
	Square Element = "square"
	Row    Element = "row"
	Column Element = "column"
)

// Offset is a pixel of an element, rows downwards and columns to the right of its origin.
type Offset struct{ DY, DX int }

// IsDisk reports whether the element is the disk.
func (e Element) IsDisk() bool { return e == "" || e == Disk }

// Check reports whether there is such an element.
func (e Element) Check() error {
	_, err := e.Offsets(1)
	return err
}

// Offsets lists the pixels in reading order. The error is that of an unknown name, of rows that are no element, and of a
// negative radius.
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

// checkRows reports rows that are no element.
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
