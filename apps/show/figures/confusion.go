package figures

import (
	"errors"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// Confused is a classifier with its confusion matrix.
type Confused struct {
	Label   string
	Classes []string
	Counts  [][]int // by true class, then by predicted class
}

// mostConfused is the maximum number of classes whose matrix is legible.
const mostConfused = 40

// Confusion draws confusion matrices, one below the other: a row for each true class, a column for each predicted one, and in the cells
// the numbers of samples. The darker a cell, the larger its share of the row; right predictions are blue, wrong ones orange.
func Confusion(list ...Confused) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("figures: no classifiers to draw")
	}
	var rows [][]panel
	most, below := 0, 0
	for _, c := range list {
		n := len(c.Classes)
		if n > mostConfused {
			return nil, fmt.Errorf("figures: %s: a matrix of %d classes is not legible, at most %d are drawn", c.Label, n, mostConfused)
		}
		right := 0
		for k, row := range c.Counts {
			right += row[k]
		}
		total := lists.Sum(lists.Map(c.Counts, lists.Sum[int]))
		title := fmt.Sprintf("%s: %s of %s get their class", c.Label, numeral.Percent(float64(right)/float64(max(1, total))), numeral.Of(total, "sample"))
		side := axis{min: -0.5, max: float64(n) - 0.5, names: c.Classes}
		x, y := side, side
		x.label, y.label, y.inverted = "predicted class", "true class", true
		corner := line{points: plotter.XYs{{}}, pointsOnly: true} // the cells are no points
		rows = append(rows, []panel{{title: title, x: x, y: y, lines: []line{corner}, extra: []plot.Plotter{confused(c.Counts)}}})
		most = max(most, n)
		below = max(below, namedTicks(c.Classes).height())
	}
	const usual = 90 // pixels of names below the matrix
	return panels(rows, nil, max(300, 160+44*min(most, 20))+max(0, below-usual))
}

// confused is a matrix of counts, drawn as the content of a plot.
type confused [][]int

func (m confused) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := textStyle(labelSize)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for i, row := range m {
		total := lists.Sum(row)
		for j, n := range row {
			share := float64(n) / float64(max(1, total))
			dark := series(1)
			if i == j {
				dark = series(0)
			}
			at := vg.Rectangle{Min: vg.Point{X: x(float64(j) - 0.5), Y: y(float64(i) + 0.5)}, Max: vg.Point{X: x(float64(j) + 0.5), Y: y(float64(i) - 0.5)}}
			c.SetColor(blend(dark, share))
			c.Fill(at.Path())
			if n > 0 && len(m) <= 20 {
				style.Color = ink
				if share > 0.6 {
					style.Color = color.White
				}
				c.FillText(style, vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: (at.Min.Y + at.Max.Y) / 2}, numeral.Count(n))
			}
		}
	}
}

// blend mixes white with a share of a colour.
func blend(with color.Color, share float64) color.Color {
	mix := func(v uint32) uint8 { return uint8(255 - share*float64(255-v>>8) + 0.5) }
	r, g, b, _ := with.RGBA()
	return color.RGBA{R: mix(r), G: mix(g), B: mix(b), A: 255}
}
