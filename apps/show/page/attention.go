package page

import (
	"cmp"
	"slices"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/internal/volume"
)

// shownUnits is the number of units whose attention a page shows.
const shownUnits = 10

// attention draws where the heads of the last layer with attention attend: in images, and in the images that use the units with the
// largest variance. It is nil for a model without such a layer.
func (v *view) attention() ([]doc.Block, error) {
	names := figures.AttentionValues(v.run)
	if len(names) == 0 || len(v.run.Columns(names[len(names)-1])) > 1 { // the maps depend on more than images
		return nil, nil
	}
	pixels := volume.Of(v.run.Shape())
	n := min(v.n, figures.MostAttended)
	a, err := figures.AttentionOf(v.coder, names[len(names)-1], v.images[:n*pixels])
	if err != nil {
		return nil, err
	}
	units := varying(v.codes32[:n*v.run.Units()], v.run.Units())
	shown := *a
	if first := min(10, n); n > 0 {
		shown.Images, shown.Maps = a.Images[:first*pixels], a.Maps[:first*len(a.Maps)/n]
	}
	rows := append(shown.Rows("images"), a.OfUnits(v.codes32[:n*v.run.Units()], units).Rows("mean images of units "+show.Numbered(units))...)
	f, err := figures.ImageRows(rows...)
	if err != nil {
		return nil, err
	}
	return section("Attention", "Where the heads of the last layer with attention attend, in orange: first in images, then in the mean of the images that use a unit, weighted by its code. "+
		"In a picture the brightest orange is the most attention, and no orange the least.", f), nil
}

// varying returns the units with the largest variance of their codes, ascending.
func varying(codes []float32, width int) []int {
	n := float64(len(codes) / width)
	means, squares := make([]float64, width), make([]float64, width)
	for i, c := range codes {
		means[i%width] += float64(c) / n
		squares[i%width] += float64(c) * float64(c) / n
	}
	units := make([]int, width)
	for j := range units {
		units[j], squares[j] = j, squares[j]-means[j]*means[j]
	}
	slices.SortStableFunc(units, func(a, b int) int { return cmp.Compare(squares[b], squares[a]) })
	units = units[:min(shownUnits, width)]
	slices.Sort(units)
	return units
}
