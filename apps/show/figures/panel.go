package figures

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tessera/internal/lists"
)

// line is a series of points with one style.
type line struct {
	name       string
	points     plotter.XYs
	bars       []float64    // half the heights of error bars at the points; nil for none
	across     []float64    // half the widths of horizontal error bars at the points; nil for none
	ends       [][2]float64 // lower and upper ends of error bars at the points, in place of bars
	color      color.Color
	dashes     []vg.Length
	glyph      draw.GlyphDrawer // shape of the points; nil draws none
	pointsOnly bool             // no line between the points
	step       bool             // the line is a step function: each segment is horizontal, then vertical
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

type panel struct {
	title string
	x, y  axis
	lines []line
	extra []plot.Plotter // drawn over the lines
}

// plot returns the panel as a plot. Points outside the range of an axis are omitted.
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
		if err := errors.Join(p.addBars(out, l), addLine(out, l, points)); err != nil {
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

// segments returns the error bars of a line. A bar whose lower end a logarithmic axis cannot show starts at its point.
func (p panel) segments(l line) (list []plotter.XYs) {
	for i, at := range l.points {
		if len(p.shown(plotter.XYs{at})) == 0 {
			continue
		}
		add := func(low, high plotter.XY) {
			if len(p.shown(plotter.XYs{low})) == 0 {
				low = at
			}
			if (low.X < high.X || low.Y < high.Y) && len(p.shown(plotter.XYs{high})) > 0 {
				list = append(list, plotter.XYs{low, high})
			}
		}
		if l.bars != nil {
			add(plotter.XY{X: at.X, Y: at.Y - l.bars[i]}, plotter.XY{X: at.X, Y: at.Y + l.bars[i]})
		}
		if l.across != nil {
			add(plotter.XY{X: at.X - l.across[i], Y: at.Y}, plotter.XY{X: at.X + l.across[i], Y: at.Y})
		}
		if l.ends != nil {
			add(plotter.XY{X: at.X, Y: l.ends[i][0]}, plotter.XY{X: at.X, Y: l.ends[i][1]})
		}
	}
	return list
}

func (p panel) addBars(to *plot.Plot, l line) error {
	for _, segment := range p.segments(l) {
		bar, err := plotter.NewLine(segment)
		if err != nil {
			return err
		}
		bar.LineStyle = draw.LineStyle{Color: l.color, Width: lineWidth}
		to.Add(bar)
	}
	return nil
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

func (n note) Plot(c draw.Canvas, _ *plot.Plot) {
	style := textStyle(labelSize)
	style.Color, style.XAlign, style.YAlign = quiet, draw.XCenter, draw.YCenter
	c.FillText(style, c.Center(), string(n))
}

// axis is the scale of one direction of a panel.
type axis struct {
	label    string
	log      bool
	whole    bool      // the values are counts: no ticks between whole numbers
	inverted bool      // values increase from top to bottom; only for linear axes
	min, max float64   // smallest range that is shown; if both are 0, the range of the data
	marks    []float64 // the only values with ticks; nil for round values
	names    []string  // names of the values 0, 1, 2, ...
	room     int       // number of names that have a place; 0 for the default of a wide panel
}

// shows reports whether the axis can show a value.
func (a axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

// set sets the range and ticks of a plot's axis, which already has the range of the data or is empty.
func (a axis) set(to *plot.Axis) {
	if a.min != a.max {
		to.Min, to.Max = min(to.Min, a.min), max(to.Max, a.max)
	}
	if to.Min > to.Max { // no data
		to.Min, to.Max = 0.1, 1
	}
	if a.marks != nil {
		a.mark(to)
		return
	}
	if a.names != nil {
		to.Tick.Marker = namedTicks(a.names)
		if a.room > 0 {
			to.Tick.Marker = fewTicks{namedTicks(a.names), a.room}
		}
		if a.inverted {
			to.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
			return
		}
		to.Tick.Label.Rotation = math.Pi / 2
		to.Tick.Label.XAlign, to.Tick.Label.YAlign = draw.XRight, draw.YCenter
		return
	}
	if !a.log {
		if to.Min == to.Max {
			half := max(math.Abs(to.Min)/10, 1e-3)
			to.Min, to.Max = to.Min-half, to.Max+half
		}
		to.Tick.Marker = linearTicks{whole: a.whole}
		if a.inverted {
			to.Scale = plot.InvertedScale{Normalizer: plot.LinearScale{}}
		}
		return
	}
	to.Min, to.Max = floorLog(to.Min), ceilLog(to.Max)
	if to.Min == to.Max {
		to.Min, to.Max = to.Min/2, to.Max*2
	}
	to.Scale = plot.LogScale{}
	to.Tick.Marker = logTicks{}
}

// mark sets ticks at the axis's marks only.
func (a axis) mark(to *plot.Axis) {
	var ticks plot.ConstantTicks
	for _, v := range a.marks {
		ticks = append(ticks, plot.Tick{Value: v, Label: tickLabel(v)})
	}
	to.Tick.Marker = ticks
	if a.log {
		to.Scale = plot.LogScale{}
	}
}

// floorLog returns the largest d*10^n <= v, for a digit d: a possible end of a logarithmic axis.
func floorLog(v float64) float64 {
	n := math.Floor(math.Log10(v))
	return decimal(math.Floor(v/math.Pow(10, n)+1e-9), int(n))
}

func ceilLog(v float64) float64 {
	n := math.Floor(math.Log10(v))
	return decimal(math.Ceil(v/math.Pow(10, n)-1e-9), int(n))
}

// decimal returns digit * 10^n, correctly rounded.
func decimal(digit float64, n int) float64 {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(digit, 'f', -1, 64)+"e"+strconv.Itoa(n), 64) // digits and an exponent
	return v
}

// namedTicks labels 0, 1, 2, ... with names; if there are too many, only evenly spaced ones.
type namedTicks []string

const (
	mostNames = 64 // of a panel as wide as the figure
	longest   = 24 // maximum number of letters of a name
)

// height returns the height in pixels of the names below an axis.
func (n namedTicks) height() (most int) {
	for _, t := range n.Ticks(0, float64(len(n))) {
		most = max(most, pixels(textStyle(tickSize).Width(t.Label)))
	}
	return most
}

func (n namedTicks) Ticks(least, most float64) []plot.Tick { return n.among(mostNames, least, most) }

// among labels at most a number of names, evenly spaced.
func (n namedTicks) among(number int, least, most float64) (ticks []plot.Tick) {
	every := (len(n) + number - 1) / number
	for i := 0; i < len(n); i += every {
		name := []rune(n[i])
		if len(name) > longest {
			name = append(name[:longest-1], '…')
		}
		if v := float64(i); least <= v && v <= most {
			ticks = append(ticks, plot.Tick{Value: v, Label: string(name) + "  "}) // a distance from the axis
		}
	}
	return ticks
}

// fewTicks labels only some names.
type fewTicks struct {
	namedTicks
	most int
}

func (f fewTicks) Ticks(least, most float64) []plot.Tick { return f.among(f.most, least, most) }

// linearTicks marks and labels three to six multiples of 1, 2 or 5 times a power of ten; fewer if only whole numbers are
// meaningful.
type linearTicks struct{ whole bool }

func (l linearTicks) Ticks(least, most float64) []plot.Tick {
	rough := (most - least) / 6
	n := int(math.Floor(math.Log10(rough)))
	step := decimal(10, n)
	for _, digit := range []float64{5, 2, 1} {
		if s := decimal(digit, n); s >= rough {
			step = s
		}
	}
	if l.whole {
		step = max(1, step)
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []plot.Tick
	for i := int(math.Ceil(least/step - 1e-9)); float64(i)*step <= most+1e-9*step; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return ticks
}

// logTicks marks all d * 10^n and labels powers of ten; on short ranges also 2 and 5, on very short ones every d except 6, 7
// and 9, whose labels would touch. There are always two labels.
type logTicks struct{}

func (logTicks) Ticks(least, most float64) []plot.Tick {
	decades := math.Log10(most / least)
	var ticks []plot.Tick
	labels := 0
	for n := int(math.Floor(math.Log10(least))); n <= int(math.Ceil(math.Log10(most))); n++ {
		for digit := 1; digit <= 9; digit++ {
			v := decimal(float64(digit), n)
			if v < least*(1-1e-9) || v > most*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || decades < 2.3 && (digit == 2 || digit == 5) || decades < 0.8 && digit != 6 && digit != 7 && digit != 9 {
				t.Label = tickLabel(v)
				labels++
			}
			ticks = append(ticks, t)
		}
	}
	if labels < 2 { // from 0.6 to 0.7
		for i := range ticks {
			ticks[i].Label = tickLabel(ticks[i].Value)
		}
	}
	return ticks
}

// tickLabel formats a number, without an exponent if that is short.
func tickLabel(v float64) string {
	if v != 0 && (math.Abs(v) < 1e-4 || math.Abs(v) >= 1e6) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// panels returns a figure of rows of panels of equal size under one legend. The rows are equally long.
func panels(rows [][]panel, names legend, panelHeight int) (*Figure, error) {
	g := grid{panels: rows, plots: make([][]*plot.Plot, len(rows))}
	for i, row := range rows {
		for _, p := range row {
			one, err := p.plot()
			if err != nil {
				return nil, err
			}
			g.plots[i] = append(g.plots[i], one)
		}
	}
	top := margin + names.height(rowWidth)
	f := &Figure{width: pageWidth, height: top + margin + len(rows)*panelHeight + (len(rows)-1)*gap}
	f.draw = func(c draw.Canvas) {
		names.draw(draw.Crop(c, dots(margin), -dots(margin), 0, -dots(margin)))
		g.draw(draw.Crop(c, dots(margin), -dots(margin), dots(margin), -dots(top)))
	}
	return f, nil
}

// grid is a set of panels with their plots, aligned by the axes of each column and row. Titles and labels are placed here,
// because gonum/plot leaves too much space above logarithmic axes.
type grid struct {
	panels [][]panel
	plots  [][]*plot.Plot
}

// margins is the space around the data of a plot.
type margins struct{ left, right, bottom, top vg.Length }

// texts returns the space for titles and labels, the same in all panels.
func (g grid) texts() margins {
	label := textStyle(labelSize).Height("M") + 4
	r := margins{left: label, bottom: label}
	for _, row := range g.panels {
		for _, p := range row {
			if p.title != "" {
				r.top = textStyle(titleSize).Height("M") + 6
			}
		}
	}
	return r
}

func (g grid) draw(area draw.Canvas) {
	tiles := draw.Tiles{Rows: len(g.panels), Cols: len(g.panels[0]), PadX: dots(gap), PadY: dots(gap)}
	texts := g.texts()
	inner := func(i, j int) draw.Canvas {
		return draw.Crop(tiles.At(area, j, i), texts.left, 0, texts.bottom, -texts.top)
	}
	columns, rows := make([]margins, tiles.Cols), make([]margins, tiles.Rows)
	for i := range g.plots {
		for j, p := range g.plots[i] {
			r := ticksOf(p, inner(i, j))
			columns[j].left, columns[j].right = max(columns[j].left, r.left), max(columns[j].right, r.right)
			rows[i].bottom, rows[i].top = max(rows[i].bottom, r.bottom), max(rows[i].top, r.top)
		}
	}
	for i := range g.plots {
		for j, p := range g.plots[i] {
			c := inner(i, j)
			r := ticksOf(p, c)
			p.Draw(draw.Crop(c, columns[j].left-r.left, r.right-columns[j].right, rows[i].bottom-r.bottom, r.top-rows[i].top))
			data := draw.Crop(c, columns[j].left, -columns[j].right, rows[i].bottom, -rows[i].top)
			g.panels[i][j].write(tiles.At(area, j, i), data)
		}
	}
}

// ticksOf returns the space for a plot's ticks and their numbers.
func ticksOf(p *plot.Plot, c draw.Canvas) margins {
	data := p.DataCanvas(c)
	return margins{data.Min.X - c.Min.X, c.Max.X - data.Max.X, data.Min.Y - c.Min.Y, c.Max.Y - data.Max.Y}
}

// write writes title and labels into a tile, centred on the data area.
func (p panel) write(tile, data draw.Canvas) {
	title := textStyle(titleSize)
	title.XAlign, title.YAlign = draw.XCenter, draw.YTop
	half := title.Width(p.title) / 2
	tile.FillText(title, vg.Point{X: clamp(data.Center().X, tile.Min.X+half, tile.Max.X-half), Y: tile.Max.Y}, p.title)
	label := textStyle(labelSize)
	label.XAlign = draw.XCenter
	descent := label.FontExtents().Descent
	tile.FillText(label, vg.Point{X: data.Center().X, Y: tile.Min.Y + descent}, p.x.label)
	label.Rotation = math.Pi / 2
	tile.FillText(label, vg.Point{X: tile.Min.X + label.FontExtents().Height - descent, Y: data.Center().Y}, p.y.label)
}

// thumbnail is the width of a line sample in a legend.
const thumbnail = vg.Length(18)

// legend is a strip of names above the panels, where it covers no data. A line contains as many names as fit.
type legend []line

// height returns the height in pixels of the strip at the given width.
func (l legend) height(width int) int {
	if len(l) == 0 {
		return 0
	}
	_, rows := l.places(dots(width))
	return rows*l.rowHeight() + gap/2
}

func (l legend) rowHeight() int {
	return pixels(textStyle(labelSize).Height("M")) + 6
}

// place is the position of an entry: distance from the left, and row.
type place struct {
	x   vg.Length
	row int
}

func (l legend) places(width vg.Length) (places []place, rows int) {
	style, x, row := textStyle(labelSize), vg.Length(0), 0
	for _, entry := range l {
		w := thumbnail + 4 + style.Width(entry.name)
		if x > 0 && x+w > width {
			x, row = 0, row+1
		}
		places = append(places, place{x, row})
		x += w + 14
	}
	return places, row + 1
}

// draw draws the strip at the top of a canvas.
func (l legend) draw(c draw.Canvas) {
	places, _ := l.places(c.Size().X)
	style := textStyle(labelSize)
	style.YAlign = draw.YCenter
	for i, entry := range l {
		x := c.Min.X + places[i].x
		y := c.Max.Y - dots(places[i].row*l.rowHeight()+l.rowHeight()/2)
		if !entry.pointsOnly {
			c.StrokeLine2(entry.lineStyle(), x, y, x+thumbnail, y)
		}
		if entry.glyph != nil {
			c.DrawGlyphNoClip(entry.glyphStyle(), vg.Point{X: x + thumbnail/2, Y: y})
		}
		c.FillText(style, vg.Point{X: x + thumbnail + 4, Y: y}, entry.name)
	}
}

// label is the name of a point.
type label struct {
	at    plotter.XY
	text  string
	color color.Color
}

// labels writes names next to points. Each name is drawn at the first free position around its point, with near positions
// first: if there is space, no name covers a point, a line or another name. A thin line connects distant names to their
// points.
type labels struct {
	names  []label
	points plotter.XYs // other points that names should not cover
	lines  []line      // step lines that names should not cover
}

// The candidate positions around a point: directions, most legible first, and distances.
var (
	directions = []vg.Point{
		{X: 1}, {X: -1}, {Y: 1}, {Y: -1}, {X: 1, Y: 1}, {X: -1, Y: 1}, {X: 1, Y: -1}, {X: -1, Y: -1},
		{X: 1, Y: 0.5}, {X: 1, Y: -0.5}, {X: -1, Y: 0.5}, {X: -1, Y: -0.5}, {X: 0.5, Y: 1}, {X: -0.5, Y: 1}, {X: 0.5, Y: -1}, {X: -0.5, Y: -1},
	}
	distances = []vg.Length{5, 8, 12, 16, 20, 25, 30, 36, 44, 52, 60, 70, 80}
)

// tied is the distance above which a line connects a name to its point.
const tied = 12

func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	place := func(xy plotter.XY) vg.Point { return vg.Point{X: toX(xy.X), Y: toY(xy.Y)} }
	style := textStyle(smallSize)
	taken := lists.Map(l.names, func(one label) vg.Rectangle { return boxAround(place(one.at), glyphRadius+1) })
	for _, xy := range l.points {
		taken = append(taken, boxAround(place(xy), glyphRadius))
	}
	for _, line := range l.lines {
		for i := range max(0, len(line.points)-1) { // right, then down, as they are drawn
			from, to := place(line.points[i]), place(line.points[i+1])
			corner := vg.Point{X: to.X, Y: from.Y}
			taken = append(taken, spanned(from, corner), spanned(corner, to))
		}
	}
	for _, one := range l.names {
		at := place(one.at)
		size := vg.Point{X: style.Width(one.text), Y: style.FontExtents().Ascent}
		box, distance := freePlace(c.Rectangle, taken, at, size)
		taken = append(taken, box)
		style.Color = one.color
		if distance >= tied {
			end := vg.Point{X: clamp(at.X, box.Min.X, box.Max.X), Y: clamp(at.Y, box.Min.Y, box.Max.Y)}
			c.StrokeLine2(draw.LineStyle{Color: quiet, Width: 0.4}, at.X, at.Y, end.X, end.Y)
		}
		c.FillText(style, vg.Point{X: box.Min.X, Y: box.Min.Y}, one.text)
	}
}

// freePlace returns the position at which a text of the given size covers the smallest area of the taken boxes, and its
// distance from the point.
func freePlace(area vg.Rectangle, taken []vg.Rectangle, at, size vg.Point) (best vg.Rectangle, distance vg.Length) {
	least := math.Inf(1)
	for _, d := range distances {
		for _, way := range directions {
			reach := d
			if way.X != 0 && way.Y != 0 {
				reach *= math.Sqrt2 / 2
			}
			box := boxNextTo(at, way, reach, size)
			hidden := float64(outside(box, area))
			for _, other := range taken {
				hidden += float64(overlap(box, other))
			}
			if hidden < least {
				best, distance, least = box, d, hidden
			}
			if hidden == 0 {
				return best, distance
			}
		}
	}
	return best, distance
}

// boxNextTo returns the box of a text in a direction from a point.
func boxNextTo(at, way vg.Point, reach vg.Length, size vg.Point) vg.Rectangle {
	low := vg.Point{
		X: at.X + way.X*reach + size.X*(way.X-1)/2,
		Y: at.Y + way.Y*reach + size.Y*(way.Y-1)/2,
	}
	return vg.Rectangle{Min: low, Max: low.Add(size)}
}

func boxAround(p vg.Point, radius vg.Length) vg.Rectangle {
	r := vg.Point{X: radius, Y: radius}
	return vg.Rectangle{Min: p.Sub(r), Max: p.Add(r)}
}

// spanned returns the bounding box of a horizontal or vertical line.
func spanned(a, b vg.Point) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: min(a.X, b.X) - lineWidth, Y: min(a.Y, b.Y) - lineWidth},
		Max: vg.Point{X: max(a.X, b.X) + lineWidth, Y: max(a.Y, b.Y) + lineWidth},
	}
}

// overlap returns the area that two boxes share.
func overlap(a, b vg.Rectangle) vg.Length {
	return max(0, min(a.Max.X, b.Max.X)-max(a.Min.X, b.Min.X)) * max(0, min(a.Max.Y, b.Max.Y)-max(a.Min.Y, b.Min.Y))
}

// outside returns the area of a box outside another one, with a large weight, because clipped text is worse than overlaps.
func outside(box, area vg.Rectangle) vg.Length {
	return 100 * (overlap(box, box) - overlap(box, area))
}

func clamp(v, least, most vg.Length) vg.Length { return max(least, min(v, most)) }
