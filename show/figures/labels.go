package figures

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// label is the name of a point.
type label struct {
	at    plotter.XY
	text  string
	color color.Color
}

// labels writes names beside points. If there is space, no name hides a point, a line or another name: each takes the first
// free place around its point, near places first. A thin line connects distant names to their points.
type labels struct {
	names []label
	lines []line // steps that names should not hide
}

// The candidate places around a point: directions, most legible first, and distances.
var (
	directions = []vg.Point{
		{X: 1}, {X: -1}, {Y: 1}, {Y: -1}, {X: 1, Y: 1}, {X: -1, Y: 1}, {X: 1, Y: -1}, {X: -1, Y: -1},
		{X: 1, Y: 0.5}, {X: 1, Y: -0.5}, {X: -1, Y: 0.5}, {X: -1, Y: -0.5}, {X: 0.5, Y: 1}, {X: -0.5, Y: 1}, {X: 0.5, Y: -1}, {X: -0.5, Y: -1},
	}
	distances = []vg.Length{5, 8, 12, 16, 20, 25, 30, 36, 44, 52, 60, 70, 80}
)

// tied is the distance from which a line connects a name to its point.
const tied = 12

// Plot implements [plot.Plotter].
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	place := func(xy plotter.XY) vg.Point { return vg.Point{X: toX(xy.X), Y: toY(xy.Y)} }
	style := textStyle(smallSize)
	var taken []vg.Rectangle
	for _, one := range l.names {
		taken = append(taken, around(place(one.at), glyphRadius+1))
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

// freePlace returns the place where a text of that size hides least, and its distance from the point.
func freePlace(area vg.Rectangle, taken []vg.Rectangle, at, size vg.Point) (best vg.Rectangle, distance vg.Length) {
	least := math.Inf(1)
	for _, d := range distances {
		for _, way := range directions {
			reach := d
			if way.X != 0 && way.Y != 0 {
				reach *= math.Sqrt2 / 2
			}
			box := beside(at, way, reach, size)
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

// beside returns the box of a text that lies in one direction of a point.
func beside(at, way vg.Point, reach vg.Length, size vg.Point) vg.Rectangle {
	low := vg.Point{
		X: at.X + way.X*reach + size.X*(way.X-1)/2,
		Y: at.Y + way.Y*reach + size.Y*(way.Y-1)/2,
	}
	return vg.Rectangle{Min: low, Max: low.Add(size)}
}

func around(p vg.Point, radius vg.Length) vg.Rectangle {
	r := vg.Point{X: radius, Y: radius}
	return vg.Rectangle{Min: p.Sub(r), Max: p.Add(r)}
}

// spanned is the box of a level or upright line.
func spanned(a, b vg.Point) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: min(a.X, b.X) - lineWidth, Y: min(a.Y, b.Y) - lineWidth},
		Max: vg.Point{X: max(a.X, b.X) + lineWidth, Y: max(a.Y, b.Y) + lineWidth},
	}
}

// overlap is the area that two boxes share.
func overlap(a, b vg.Rectangle) vg.Length {
	return max(0, min(a.Max.X, b.Max.X)-max(a.Min.X, b.Min.X)) * max(0, min(a.Max.Y, b.Max.Y)-max(a.Min.Y, b.Min.Y))
}

// outside is the area of a box that lies outside of another one, with a large weight: clipped text is worst.
func outside(box, area vg.Rectangle) vg.Length {
	return 100 * (overlap(box, box) - overlap(box, area))
}

func clamp(v, least, most vg.Length) vg.Length { return max(least, min(v, most)) }
