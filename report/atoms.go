package report

import (
	"errors"
	"math"
	"slices"

	"tessera/metrics"
)

// largestAtom is the maximum width of one atom in pixels.
const largestAtom = 256

// Atoms draws a dictionary as a grid, row by row, each atom scaled separately: see [Signed]. The decoder's bias, if there is
// one, is the last cell, in a yellow frame.
func Atoms(a *metrics.Atoms) (*Figure, error) {
	if a == nil || a.Count < 1 || len(a.Values) != a.Count*a.Pixels() || a.Bias != nil && len(a.Bias) != a.Pixels() {
		return nil, errors.New("report: no atoms to draw")
	}
	cells, n := a.Values, a.Count
	if a.Bias != nil {
		cells, n = slices.Concat(a.Values, a.Bias), n+1
	}
	grid, _, err := newRaster(a.Shape, gridColumns(n), Signed, cells, rowWidth, largestAtom)
	if err != nil {
		return nil, err
	}
	drawn := grid.image(cells, n)
	if a.Bias != nil {
		grid.frame(drawn, a.Count)
	}
	return stack([]block{picture("", drawn)}), nil
}

// WriteAtoms writes the picture of [Atoms] to a file: see [Figure.Save].
func WriteAtoms(path string, a *metrics.Atoms) error {
	f, err := Atoms(a)
	if err != nil {
		return err
	}
	return f.Save(path)
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
