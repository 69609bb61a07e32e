package figures

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"tessera/internal/lists"
	"tessera/metrics"
)

// isVectors reports whether samples of a shape are vectors, which are drawn as heat maps and spectra.
func isVectors(shape []int) bool { return len(shape) == 1 }

// vectorAtoms draws a dictionary of vectors as a heat map, with the bias, if there is one, as the last row. A unit without effect is
// marked as dead.
func vectorAtoms(a *metrics.Atoms, effects []float64, names []string) (*Figure, error) {
	row := ImageRow{Shape: a.Shape, Images: a.Values, Caption: "atoms", Values: names}
	for j := range a.Count {
		name := fmt.Sprint(j)
		if isDead(effects, j) {
			name += " (dead)"
		}
		row.Names = append(row.Names, name)
	}
	if a.Bias != nil {
		row.Images = append(row.Images[:len(row.Images):len(row.Images)], a.Bias...)
		row.Names = append(row.Names, "bias")
	}
	return HeatMaps(row)
}

// isDead reports whether a unit has less than 1 % of the effect of the unit of the largest effect.
func isDead(effects []float64, j int) bool {
	return effects != nil && effects[j] <= 0.01*slices.Max(effects)
}

// Sizes of a heat map in pixels.
const (
	mapFrame   = 110 // title and labels
	cellHeight = 14  // one line, so that each has its name
	leastMap   = 260
	largestMap = 1200
)

// HeatMaps draws one heat map for each row, for example for the atoms of each model: one line for each vector, one column for
// each value. White is 0, red is positive, blue is negative. All maps have the same colours; the scale stands above them. Of many named values only the
// largest of each vector are drawn.
func HeatMaps(rows ...ImageRow) (*Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("figures: no vectors to draw")
	}
	rows = slices.Clone(rows)
	var maps []*heatMap
	most, lines, negative := 0.0, 0, false
	for i, row := range rows {
		m, err := newHeatMap(row)
		if err == nil && len(row.Values) == m.columns && m.columns > 2*mostNames {
			row = row.largest(m.lines)
			rows[i] = row
			m, err = newHeatMap(row)
		}
		if err != nil {
			return nil, err
		}
		maps = append(maps, m)
		most, lines, negative = max(most, m.most), max(lines, m.lines), negative || slices.Min(row.Images) < 0
	}
	var all [][]panel
	for i, m := range maps {
		m.most = most
		names := rows[i].Names
		if names == nil {
			for j := range m.lines {
				names = append(names, fmt.Sprint(j))
			}
		}
		all = append(all, []panel{{title: rows[i].Caption, extra: []plot.Plotter{m}, lines: []line{m.corners()},
			x: valueAxis(rows[i]), y: axis{label: "unit", whole: true, inverted: true, names: names}}})
	}
	return panels(all, colourScale(most, negative), min(max(mapFrame+cellHeight*lines, leastMap), largestMap)+namedTicks(all[0][0].x.names).height())
}

// largest returns the row with the values that are among the largest magnitudes of one of its vectors, those of the first vector first.
func (r ImageRow) largest(vectors int) ImageRow {
	width, each := r.Shape[0], max(1, mostNames/vectors)
	var chosen []int
	for vector := range slices.Chunk(r.Images, width) {
		order := lists.Range(0, width)
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Compare(math.Abs(float64(vector[b])), math.Abs(float64(vector[a])))
		})
		for _, i := range order[:each] {
			if !slices.Contains(chosen, i) {
				chosen = append(chosen, i)
			}
		}
	}
	images, all := r.Images, r.Values
	r.Caption += fmt.Sprintf(", the largest values of each: %d of %d", len(chosen), width)
	r.Shape, r.Values, r.Images = []int{len(chosen)}, lists.Map(chosen, func(i int) string { return all[i] }), nil
	for vector := range slices.Chunk(images, width) {
		r.Images = append(r.Images, lists.Map(chosen, func(i int) float32 { return vector[i] })...)
	}
	return r
}

// colourScale is the legend of heat maps: the colours of five values, of three where no value is negative.
func colourScale(most float64, negative bool) (scale legend) {
	shares := []float64{-1, -0.5, 0, 0.5, 1}
	if !negative {
		shares = shares[2:]
	}
	for _, share := range shares {
		c := Heat(share)
		scale = append(scale, line{name: shortNumber(share * most), color: c, glyph: draw.BoxGlyph{}, pointsOnly: true})
	}
	return scale
}

// valueAxis labels the values of vectors with their names, or else with numbers.
func valueAxis(row ImageRow) axis {
	if len(row.Values) == row.Shape[0] {
		return axis{names: row.Values}
	}
	return axis{label: "value", whole: true}
}

// heatMap is a plotter that draws a row of vectors as lines of cells.
type heatMap struct {
	values         []float32
	lines, columns int
	most           float64 // largest magnitude
}

func newHeatMap(row ImageRow) (*heatMap, error) {
	m := &heatMap{values: row.Images, most: 0}
	if !isVectors(row.Shape) || row.Shape[0] < 1 || len(row.Images) == 0 || len(row.Images)%row.Shape[0] != 0 {
		return nil, fmt.Errorf("figures: got %d values, want whole vectors of shape %v", len(row.Images), row.Shape)
	}
	m.columns = row.Shape[0]
	m.lines = len(row.Images) / m.columns
	if !finite(row.Images) {
		return nil, errors.New("figures: vectors with NaN or infinite values cannot be drawn")
	}
	for _, v := range row.Images {
		m.most = max(m.most, math.Abs(float64(v)))
	}
	return m, nil
}

// corners returns an invisible line that gives the axes their ranges: cells are centred at whole numbers.
func (m *heatMap) corners() line {
	return line{points: plotter.XYs{{X: -0.5, Y: -0.5}, {X: float64(m.columns) - 0.5, Y: float64(m.lines) - 0.5}}, color: color.Transparent}
}

func (m *heatMap) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	area := vg.Rectangle{Min: vg.Point{X: x(-0.5), Y: y(float64(m.lines) - 0.5)}, Max: vg.Point{X: x(float64(m.columns) - 0.5), Y: y(-0.5)}}
	size := area.Size()
	drawn := image.NewRGBA(image.Rect(0, 0, max(1, pixels(size.X)), max(1, pixels(size.Y))))
	w, h := drawn.Rect.Dx(), drawn.Rect.Dy()
	for py := range h {
		top, bottom := cells(py, h, m.lines)
		for px := range w {
			left, right := cells(px, w, m.columns)
			drawn.SetRGBA(px, py, m.color(m.extreme(top, bottom, left, right)))
		}
	}
	c.DrawImage(area, drawn)
}

// cells returns the range of cells, out of n, that pixel p shows; size is the number of pixels.
func cells(p, size, n int) (from, to int) {
	from = p * n / size
	return from, max(from+1, (p+1)*n/size)
}

// extreme returns the value with the largest magnitude in a block of cells. If several cells share a pixel, this value remains
// visible.
func (m *heatMap) extreme(top, bottom, left, right int) float64 {
	most := 0.0
	for line := top; line < bottom; line++ {
		for _, v := range m.values[line*m.columns+left : line*m.columns+right] {
			if math.Abs(float64(v)) > math.Abs(most) {
				most = float64(v)
			}
		}
	}
	return most
}

// color returns the colour of a value, see [Heat].
func (m *heatMap) color(v float64) color.RGBA {
	if m.most == 0 {
		return Heat(0)
	}
	return Heat(v / m.most)
}

// Colours of the largest magnitudes.
var (
	heatRed  = color.RGBA{0xB2, 0x18, 0x2B, 0xFF}
	heatBlue = color.RGBA{0x21, 0x66, 0xAC, 0xFF}
)

// Heat returns the colour of a value in a heat map: white for 0, red for 1, blue for -1.
func Heat(share float64) color.RGBA {
	full := heatRed
	if share < 0 {
		full = heatBlue
	}
	mix := func(c uint8) uint8 { return uint8(math.Round(255 + min(math.Abs(share), 1)*(float64(c)-255))) }
	return color.RGBA{mix(full.R), mix(full.G), mix(full.B), 255}
}

// Spectra draws vectors as lines over the index of their values: one panel for each vector, one line for each row, so that
// originals and reconstructions overlap. All rows must have the same number of vectors. The names of the first row are the
// titles.
func Spectra(rows ...ImageRow) (*Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("figures: no vectors to draw")
	}
	var names legend
	var all []panel
	for i, row := range rows {
		m, err := newHeatMap(row)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = make([]panel, m.lines)
		}
		if len(all) != m.lines {
			return nil, fmt.Errorf("figures: %q has %d vectors, want %d", row.Caption, m.lines, len(all))
		}
		style := line{name: row.Caption, color: quiet}
		if i > 0 {
			style = line{name: row.Caption, color: series(i - 1), dashes: seriesDashes(i - 1)}
		}
		names = append(names, style)
		m.addTo(all, style)
	}
	columns := 2 - len(all)%2 // all rows are equally long
	for j := range all {
		all[j].x = valueAxis(rows[0])
		all[j].x.room = mostNames / columns * 2 / 3 // beside the labels of the other axis
		if j < len(rows[0].Names) {
			all[j].title = rows[0].Names[j]
		}
	}
	const height = 230 // height of a panel in pixels
	return panels(slices.Collect(slices.Chunk(all, columns)), names, height+namedTicks(all[0].x.names).height())
}

// addTo adds every vector to its panel.
func (m *heatMap) addTo(all []panel, style line) {
	const few = 16 // maximum number of values for which each value is marked
	if m.columns <= few {
		style.glyph = disc
	}
	for j := range all {
		style.points = spectrum(m.values[j*m.columns : (j+1)*m.columns])
		all[j].lines = append(all[j].lines, style)
	}
}

func spectrum(values []float32) plotter.XYs {
	points := make(plotter.XYs, len(values))
	for i, v := range values {
		points[i] = plotter.XY{X: float64(i), Y: float64(v)}
	}
	return points
}
