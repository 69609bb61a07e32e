package figures

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// line is a series of points with one style.
type line struct {
	name       string
	points     plotter.XYs
	bars       []float64 // half the heights of bars through the points; nil for none
	color      color.Color
	dashes     []vg.Length
	glyph      draw.GlyphDrawer // nil draws none
	pointsOnly bool             // no line between the points
	step       bool             // the line goes right, then up or down
}

func (l line) lineStyle() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: lineWidth, Dashes: l.dashes}
}

func (l line) glyphStyle() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: glyphRadius, Shape: l.glyph}
}

// The glyphs: measured points are filled, published points are rings.
var (
	disc = draw.CircleGlyph{}
	ring = draw.RingGlyph{}
)

// panel is one plot of a figure.
type panel struct {
	title string
	x, y  axis
	lines []line
	extra []plot.Plotter // drawn over the lines
}

// plot returns the panel as a plot. Points that an axis cannot show are left out.
func (p panel) plot() (*plot.Plot, error) {
	out := themed()
	grid := plotter.NewGrid()
	grid.Horizontal = draw.LineStyle{Color: gridLines, Width: 0.5}
	grid.Vertical = grid.Horizontal
	out.Add(grid)
	empty := true
	for _, l := range p.lines {
		points := p.shown(l.points)
		if len(points) == 0 {
			continue
		}
		empty = false
		p.addBars(out, l)
		if err := addLine(out, l, points); err != nil {
			return nil, fmt.Errorf("figures: panel %q: %w", p.title, err)
		}
	}
	p.x.set(&out.X)
	p.y.set(&out.Y)
	if empty {
		out.X.Tick.Marker, out.Y.Tick.Marker = plot.ConstantTicks{}, plot.ConstantTicks{}
		out.Add(note("not measured"))
	}
	out.Add(p.extra...)
	return out, nil
}

func (p panel) shown(points plotter.XYs) plotter.XYs {
	var shown plotter.XYs
	for _, at := range points {
		if p.x.shows(at.X) && p.y.shows(at.Y) {
			shown = append(shown, at)
		}
	}
	return shown
}

// addBars adds the bars of a line. One that begins where a logarithmic axis cannot show it begins at its point.
func (p panel) addBars(to *plot.Plot, l line) {
	for i, half := range l.bars {
		at := l.points[i]
		if half <= 0 || len(p.shown(plotter.XYs{at})) == 0 {
			continue
		}
		low := at.Y - half
		if !p.y.shows(low) {
			low = at.Y
		}
		bar, err := plotter.NewLine(plotter.XYs{{X: at.X, Y: low}, {X: at.X, Y: at.Y + half}})
		if err != nil { // the ends are not finite
			continue
		}
		bar.LineStyle = draw.LineStyle{Color: l.color, Width: lineWidth}
		to.Add(bar)
	}
}

func addLine(p *plot.Plot, l line, points plotter.XYs) error {
	if !l.pointsOnly {
		drawn, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		drawn.LineStyle = l.lineStyle()
		if l.step {
			drawn.StepStyle = plotter.PostStep
		}
		p.Add(drawn)
	}
	if l.glyph != nil {
		drawn, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		drawn.GlyphStyle = l.glyphStyle()
		p.Add(drawn)
	}
	return nil
}

// note is a text in the middle of a plot.
type note string

// Plot implements [plot.Plotter].
func (n note) Plot(c draw.Canvas, _ *plot.Plot) {
	style := textStyle(labelSize)
	style.Color, style.XAlign, style.YAlign = quiet, draw.XCenter, draw.YCenter
	c.FillText(style, c.Center(), string(n))
}
