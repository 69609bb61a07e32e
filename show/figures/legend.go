package figures

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// thumbnail is the width of a line sample in a legend.
const thumbnail = vg.Length(18)

// legend is a strip of names above the panels, where it hides no data. Each line has as many names as fit.
type legend []line

// height returns how many pixels high the strip is at that width.
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
