package figures

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tessera/metrics"
)

// largestAtom is the maximum width of one atom in pixels.
const largestAtom = 256

// Atoms draws a dictionary as a grid, row by row, each atom scaled separately, see [Signed], under the number of its unit, from 0. Where
// cells are too narrow, only some columns are numbered. The decoder's bias, if there is one, is the last cell, in a yellow frame.
// Atoms that are vectors are a heat map, see [HeatMaps]; names are those of their values, if these have names.
func Atoms(a *metrics.Atoms, names ...string) (*Figure, error) {
	if a == nil || a.Count < 1 || len(a.Values) != a.Count*a.Pixels() || a.Bias != nil && len(a.Bias) != a.Pixels() {
		return nil, errors.New("figures: no atoms to draw")
	}
	if isVectors(a.Shape) {
		return vectorAtoms(a, names)
	}
	cells, n := a.Values, a.Count
	if a.Bias != nil {
		cells, n = slices.Concat(a.Values, a.Bias), n+1
	}
	grid, _, err := newRaster(a.Shape, gridColumns(n), Signed, cells, rowWidth, largestAtom)
	if err != nil {
		return nil, err
	}
	numbering := newNumbering(grid, a.Count)
	drawn := grid.image(cells, n)
	if a.Bias != nil {
		grid.frame(drawn, a.Count)
	}
	b := picture("", drawn)
	b.draw = func(c draw.Canvas) {
		c.DrawImage(c.Rectangle, drawn)
		numbering.draw(c)
	}
	return stack([]block{b}), nil
}

// leastNumber is the smallest size of a number, in points.
const leastNumber = vg.Length(4)

// numbering is the numbers of the cells of a grid.
type numbering struct {
	grid  *raster
	count int
	style text.Style
	every int // columns from one number to the next
}

// newNumbering chooses the largest text with which every number fits its cell, and reserves a strip for it in the grid.
func newNumbering(grid *raster, count int) numbering {
	n := numbering{grid: grid, count: count, every: 1}
	cell, widest := dots(grid.width*grid.scale), fmt.Sprint(count-1)
	size := min(smallSize, smallSize*cell/textStyle(smallSize).Width(widest))
	n.style = textStyle(max(size, leastNumber))
	if size < leastNumber {
		n.every = int(math.Ceil(float64(n.style.Width(widest+" ") / dots(grid.stepX()))))
	}
	grid.strip = pixels(n.style.FontExtents().Ascent) + 2
	return n
}

func (n numbering) draw(c draw.Canvas) {
	for i := range n.count {
		if column := i % n.grid.columns; column%n.every == 0 {
			left, top := column*n.grid.stepX(), i/n.grid.columns*n.grid.stepY()
			c.FillText(n.style, vg.Point{X: c.Min.X + dots(left+rule), Y: c.Max.Y - dots(top+rule+n.grid.strip-1)}, fmt.Sprint(i))
		}
	}
}

// gridColumns returns the number of columns of a grid of n cells: between square and about 2.5 times as wide as high, with
// the fewest empty cells.
func gridColumns(n int) int {
	square := int(math.Ceil(math.Sqrt(float64(n))))
	best, empty := square, n
	for c := square; 2*c*c <= 5*n; c++ {
		if e := (c - n%c) % c; e < empty {
			best, empty = c, e
		}
	}
	return best
}
