package figures

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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

// texts is the space of titles and labels, the same in all panels.
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

// ticksOf is the space of a plot's ticks and their numbers.
func ticksOf(p *plot.Plot, c draw.Canvas) margins {
	data := p.DataCanvas(c)
	return margins{data.Min.X - c.Min.X, c.Max.X - data.Max.X, data.Min.Y - c.Min.Y, c.Max.Y - data.Max.Y}
}

// write writes title and labels into a tile, beside the middle of its data.
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
