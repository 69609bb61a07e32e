package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// Pareto draws max-approximation error against reconstruction error; the lower left corner is best. Every point is labelled.
// The figure has the measured points, the published points (see [PublishedTables]) and the Pareto front of both. Points that
// lack one of the two metrics are left out.
func Pareto(ours, published []Point) (*Figure, error) {
	p := panel{x: mseOf(ours, published).axis, y: maxMetric.axis}
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
		shown := p.labelled(set.points)
		if len(shown) == 0 {
			continue
		}
		points, front := set.look, set.look
		points.points, points.pointsOnly = xys(shown, mseMetric, maxMetric), true
		front.points, front.glyph, front.step = xys(Front(shown), mseMetric, maxMetric), nil, true
		p.lines = append(p.lines, front, points)
		texts.lines = append(texts.lines, front)
		names = append(names, set.look)
		for i, at := range shown {
			texts.names = append(texts.names, label{at: points.points[i], text: at.Label, color: set.text})
		}
	}
	if len(texts.names) == 0 {
		return nil, fmt.Errorf("%w with mse and max_approx", ErrNoPoints)
	}
	slices.Reverse(texts.names) // ours find their places first
	p.extra = append(p.extra, texts)
	return panels([][]panel{{p}}, names, 700)
}

// labelled returns the points that both axes show.
func (p panel) labelled(points []Point) []Point {
	var shown []Point
	for _, at := range points {
		if len(p.shown(plotter.XYs{{X: mseMetric.of(at), Y: maxMetric.of(at)}})) == 1 {
			shown = append(shown, at)
		}
	}
	return shown
}

// Front returns the Pareto front: no other point is better in one of the two errors and at least as good in the other one.
// The points are sorted by reconstruction error. Points with the same two errors count once; points that lack one are left out.
func Front(points []Point) []Point {
	sorted := slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		return math.IsNaN(mseMetric.of(p)) || math.IsNaN(maxMetric.of(p))
	})
	slices.SortStableFunc(sorted, func(a, b Point) int {
		return cmp.Or(cmp.Compare(mseMetric.of(a), mseMetric.of(b)), cmp.Compare(maxMetric.of(a), maxMetric.of(b)))
	})
	var front []Point
	for _, p := range sorted {
		if len(front) == 0 || maxMetric.of(p) < maxMetric.of(front[len(front)-1]) {
			front = append(front, p)
		}
	}
	return front
}
