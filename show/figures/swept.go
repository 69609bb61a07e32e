package figures

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"tessera/metrics"
)

// SweptLine is settings of a sweep, as a rule those that differ in the swept value only.
type SweptLine struct {
	Name   string // "" if it is the only line
	Points []SweptPoint
	Apart  bool // the points are not connected: they differ in more than the swept value
}

// Several reports whether the line has two different values.
func (l SweptLine) Several() bool {
	return slices.ContainsFunc(l.Points, func(p SweptPoint) bool { return p.X != l.Points[0].X })
}

// SweptPoint is one setting.
type SweptPoint struct {
	X         float64        // the swept value
	Mean      metrics.Values // over the seeds
	Deviation metrics.Values // none of a single seed
	Split     string         // images that it was measured on, as in [Point]
}

// mostSwept is the number of lines that readers can tell apart.
const mostSwept = 14

// logRatio is the ratio of the largest to the smallest value from which an axis is logarithmic, if all values are positive.
const logRatio = 8

// Swept draws some metrics over a swept value: means over the seeds with bars of one standard deviation. Settings of a line
// are connected in the order of their values. A line without a metric is left out of its panel. The error is [ErrNoPoints] if there is nothing to draw; fewer than two values, more than 14 lines, and values
// that are not finite are errors, too.
func Swept(x string, names []string, lines []SweptLine) (*Figure, error) {
	values := map[float64]bool{}
	for _, l := range lines {
		for _, p := range l.Points {
			if math.IsNaN(p.X) || math.IsInf(p.X, 0) {
				return nil, fmt.Errorf("%s: got %v, want a finite number", x, p.X)
			}
			values[p.X] = true
		}
	}
	switch {
	case len(values) == 0 || len(names) == 0:
		return nil, ErrNoPoints
	case len(values) == 1:
		return nil, fmt.Errorf("%s has one value only: a curve needs two", x)
	case len(lines) > mostSwept:
		return nil, fmt.Errorf("%d lines over %s, want at most %d: nobody can tell them apart", len(lines), x, mostSwept)
	}
	var rows [][]panel
	for i, name := range names {
		p := panel{x: sweptAxis(x, lines), y: metricAxis(name, lines)}
		for j, l := range lines {
			p.lines = append(p.lines, l.line(name, series(j), seriesDashes(j)))
		}
		if i%2 == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	height := 390
	if len(names) == 1 {
		height = 620
	}
	return panels(rows, sweptLegend(lines), height)
}

// line is the points that have a metric, in the order of their values.
func (l SweptLine) line(name string, c color.Color, dashes []vg.Length) line {
	drawn := line{name: l.Name, color: c, dashes: dashes, glyph: disc, pointsOnly: l.Apart || !l.Several()}
	sorted := slices.Clone(l.Points)
	slices.SortStableFunc(sorted, func(a, b SweptPoint) int { return cmp.Compare(a.X, b.X) })
	for _, p := range sorted {
		if mean, ok := p.Mean.Number(name); ok {
			deviation, _ := p.Deviation.Number(name)
			drawn.points = append(drawn.points, plotter.XY{X: p.X, Y: mean})
			drawn.bars = append(drawn.bars, deviation)
		}
	}
	return drawn
}

// sweptLegend names the lines, if there are several.
func sweptLegend(lines []SweptLine) (names legend) {
	if len(lines) == 1 && lines[0].Name == "" {
		return nil
	}
	for i, l := range lines {
		names = append(names, l.line("", series(i), seriesDashes(i)))
	}
	return names
}

const (
	mostMarks = 8     // values that are marked on the axis, if their numbers do not touch
	letter    = 0.025 // largest width of a digit of a mark, of the width of a panel
	space     = 0.05  // beside the data, of its range
)

// sweptAxis is the axis of the swept value.
func sweptAxis(label string, lines []SweptLine) axis {
	a := axis{label: label, whole: true}
	var values []float64
	for _, l := range lines {
		for _, p := range l.Points {
			values = append(values, p.X)
			a.whole = a.whole && p.X == math.Trunc(p.X)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if a.log = spansDecades(values); a.log {
		aside := math.Pow(values[len(values)-1]/values[0], space)
		a.min, a.max = values[0]/aside, values[len(values)-1]*aside
	} else {
		a.widen(values[0], values[len(values)-1])
	}
	if len(values) <= mostMarks && a.apart(values) {
		a.marks = values
	}
	return a
}

// apart reports whether the numbers of sorted values do not touch as marks of the axis.
func (a axis) apart(values []float64) bool {
	position := func(v float64) float64 {
		if a.log {
			return math.Log(v/a.min) / math.Log(a.max/a.min)
		}
		return (v - a.min) / (a.max - a.min)
	}
	for i := range len(values) - 1 {
		letters := float64(len(tickLabel(values[i]))+len(tickLabel(values[i+1]))) / 2
		if position(values[i+1])-position(values[i]) < letter*(letters+1) {
			return false
		}
	}
	return true
}

// widen sets the least range of a linear axis.
func (a *axis) widen(low, high float64) {
	a.min, a.max = low-space*(high-low), high+space*(high-low)
	if low >= 0 {
		a.min = max(a.min, 0)
	}
}

// metricAxis is the axis of a metric of lines.
func metricAxis(name string, lines []SweptLine) axis {
	var points []Point
	for _, l := range lines {
		for _, p := range l.Points {
			points = append(points, Point{Split: p.Split, Values: p.Mean, deviation: p.Deviation})
		}
	}
	return pointAxis(name, points)
}

// pointAxis is the axis of a metric of points.
func pointAxis(name string, points []Point) axis {
	var low, means, high []float64
	var measured []Point
	for _, p := range points {
		if mean, ok := p.Values.Number(name); ok {
			deviation, _ := p.deviation.Number(name)
			low, means, high = append(low, mean-deviation), append(means, mean), append(high, mean+deviation)
			measured = append(measured, p)
		}
	}
	a := axis{label: name, log: spansDecades(means)}
	if name == "mse" {
		a.label = mseOf(measured).label
	}
	if !a.log && len(means) > 0 {
		a.widen(slices.Min(low), slices.Max(high))
	}
	if m, ok := metrics.MeasureOf(name); ok {
		a.whole = m.Count
	}
	return a
}

// spansDecades reports whether values belong on a logarithmic axis.
func spansDecades(values []float64) bool {
	return len(values) > 0 && slices.Min(values) > 0 && slices.Max(values) >= logRatio*slices.Min(values)
}
