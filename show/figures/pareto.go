package figures

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"tessera/metrics"
)

// Pareto draws max-approximation error against reconstruction error; the lower left corner is best. Every point is labelled.
// The figure has the measured points, the published points (see [PublishedTables]) and the Pareto front of both. Points that
// lack one of the two metrics are left out.
func Pareto(ours, published []Point) (*Figure, error) {
	return pareto(ours, published, mseOf(ours, published), maxMetric)
}

// ParetoOf draws one metric against another with the names of the points and the Pareto front in the directions that improve
// the metrics. An unknown metric is an error, and one of which neither more nor less is better; points that lack one of the
// two metrics are left out.
func ParetoOf(x, y string, points []Point) (*Figure, error) {
	var of [2]metric
	for i, name := range []string{x, y} {
		m, ok := metrics.MeasureOf(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("unknown metric %q", name)
		case m.Better == metrics.Neither:
			return nil, fmt.Errorf("%s has no front: neither a larger nor a smaller one is better", name)
		}
		of[i] = metric{axis: pointAxis(name, points), of: numberOf(name), name: name, higher: m.Better == metrics.Higher}
	}
	return pareto(points, nil, of[0], of[1])
}

// pareto draws y against x.
func pareto(ours, published []Point, x, y metric) (*Figure, error) {
	p := panel{x: x.axis, y: y.axis}
	var names legend
	var texts labels
	for _, set := range []struct {
		points []Point
		look   line
		text   color.Color
	}{
		{published, line{name: "published", color: quiet, dashes: dashed, glyph: ring}, quiet},
		{ours, line{name: "measured", color: palette[0], glyph: disc}, ink},
	} {
		shown := p.labelled(set.points, x, y)
		if len(shown) == 0 {
			continue
		}
		points, edge := set.look, set.look
		points.points, points.pointsOnly = xys(shown, x, y), true
		edge.points, edge.glyph, edge.step = xys(front(shown, x, y), x, y), nil, true
		p.lines = append(p.lines, edge, points)
		texts.lines = append(texts.lines, edge)
		names = append(names, set.look)
		for i, at := range shown {
			texts.names = append(texts.names, label{at: points.points[i], text: at.Label, color: set.text})
		}
	}
	if len(texts.names) == 0 {
		return nil, fmt.Errorf("%w with %s and %s", ErrNoPoints, x.name, y.name)
	}
	slices.Reverse(texts.names) // ours find their places first
	p.extra = append(p.extra, texts)
	return panels([][]panel{{p}}, names, 700)
}

// labelled returns the points that both axes show.
func (p panel) labelled(points []Point, x, y metric) []Point {
	var shown []Point
	for _, at := range points {
		if len(p.shown(plotter.XYs{{X: x.of(at), Y: y.of(at)}})) == 1 {
			shown = append(shown, at)
		}
	}
	return shown
}

// front returns the Pareto front of two metrics, the best x first: no other point is better in one of the two and at least as good in
// the other one. Points that are equal in both count once; points that lack one are left out.
func front(points []Point, x, y metric) (front []Point) {
	sorted := slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return math.IsNaN(x.of(p)) || math.IsNaN(y.of(p)) })
	slices.SortStableFunc(sorted, func(a, b Point) int {
		return cmp.Or(cmp.Compare(x.cost(a), x.cost(b)), cmp.Compare(y.cost(a), y.cost(b)))
	})
	for _, p := range sorted {
		if len(front) == 0 || y.cost(p) < y.cost(front[len(front)-1]) {
			front = append(front, p)
		}
	}
	return front
}
