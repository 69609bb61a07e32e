package figures

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tessera/metrics"
)

// Point is the metrics of one model.
type Point struct {
	Label  string         // what the model is called in a figure
	P      float64        // target of the mean activation; NaN where the model has no such penalty
	Beta   float64        // weight of that penalty; NaN where there is none
	Values metrics.Values // by the names of `eval --json`
	Split  string         // images that it was measured on: test (also ""), validation, train or all

	deviation metrics.Values // over seeds
}

// ErrNoPoints means that a figure has no points to draw: no run has the metrics of its axes.
var ErrNoPoints = errors.New("no points to draw")

// metric is one number of a point; NaN, which is not drawn, if it has none.
type metric struct {
	axis
	of     func(Point) float64
	name   string // in errors
	higher bool   // a larger number is better
}

// cost is the number of a point, the less the better.
func (m metric) cost(p Point) float64 {
	if m.higher {
		return -m.of(p)
	}
	return m.of(p)
}

// The metrics of figures, with the study's axes.
var (
	mseMetric   = metric{axis: axis{log: true}, of: numberOf("mse"), name: "mse"} // see mseOf
	hoyerMetric = metric{axis: axis{label: "mean Hoyer sparsity of codes", max: 1}, of: numberOf("hoyer")}
	maxMetric   = metric{axis: axis{label: "max-approximation error", log: true}, of: numberOf("max_approx"), name: "max_approx"}
	recMetric   = metric{axis: axis{label: "error to reconstructions", log: true}, of: numberOf("max_approx_reconstructed")}
	betaMetric  = metric{axis: axis{label: "weight β", log: true}, of: func(p Point) float64 { return p.Beta }}
)

// mseOf is the mse with a label that says which images the points were measured on.
func mseOf(points ...[]Point) metric {
	m := mseMetric
	m.label = "mse"
	list := slices.Concat(points...)
	split := func(p Point) string { return cmp.Or(p.Split, "test") }
	if len(list) == 0 {
		return m
	}
	first := split(list[0])
	if !slices.ContainsFunc(list, func(p Point) bool { return split(p) != first }) {
		m.label = "mse of " + first + " images"
	}
	return m
}

func numberOf(name string) func(Point) float64 {
	return func(p Point) float64 { return orNaN(p.Values, name) }
}

// orNaN is the number of that name for plots: NaN, which they leave out, if there is none.
func orNaN(values metrics.Values, name string) float64 {
	if v, ok := values.Number(name); ok {
		return v
	}
	return math.NaN()
}

// group is the points of one target, in the order of the figure, with their colour.
type group struct {
	p      float64
	color  color.Color
	points []Point
}

// grouped returns the points by target, in increasing order, points without a target last. A target has the same colour in
// measured and published points.
func grouped(targets []float64, points []Point) []group {
	var groups []group
	for i, p := range targets {
		g := group{p: p, color: series(i)}
		for _, at := range points {
			if sameTarget(at.P, p) {
				g.points = append(g.points, at)
			}
		}
		slices.SortStableFunc(g.points, func(a, b Point) int { return cmp.Compare(a.Beta, b.Beta) })
		groups = append(groups, g)
	}
	return groups
}

// targetsOf lists the targets of all points in increasing order, NaN last.
func targetsOf(points []Point) []float64 {
	var targets []float64
	for _, at := range points {
		if !slices.ContainsFunc(targets, func(p float64) bool { return sameTarget(p, at.P) }) {
			targets = append(targets, at.P)
		}
	}
	slices.SortFunc(targets, func(a, b float64) int { // NaN would come first
		if math.IsNaN(a) != math.IsNaN(b) {
			return -cmp.Compare(a, b)
		}
		return cmp.Compare(a, b)
	})
	return targets
}

func sameTarget(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func targetName(p float64) string {
	if math.IsNaN(p) {
		return "no target"
	}
	return fmt.Sprintf("p = %v", p)
}

// xys takes two metrics of points.
func xys(points []Point, x, y metric) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = plotter.XY{X: x.of(p), Y: y.of(p)}
	}
	return out
}

// comparison is the measured and the published points, by target.
type comparison struct {
	ours, published []group
	pointsOnly      bool
}

func compare(ours, published []Point, pointsOnly bool) (comparison, error) {
	if len(ours)+len(published) == 0 {
		return comparison{}, ErrNoPoints
	}
	targets := targetsOf(slices.Concat(ours, published))
	return comparison{grouped(targets, ours), grouped(targets, published), pointsOnly}, nil
}

// lines draws one metric over another, published points below measured ones.
func (c comparison) lines(x, y metric) []line {
	var lines []line
	add := func(groups []group, dashes []vg.Length, glyph draw.GlyphDrawer) {
		for _, g := range groups {
			lines = append(lines, line{points: xys(g.points, x, y), color: g.color, dashes: dashes, glyph: glyph, pointsOnly: c.pointsOnly})
		}
	}
	add(c.published, dashed, ring)
	add(c.ours, nil, disc)
	return lines
}

// legend names the colours and, if both kinds of points exist, the two styles.
func (c comparison) legend() legend {
	var l legend
	has := func(groups []group) bool {
		return slices.ContainsFunc(groups, func(g group) bool { return len(g.points) > 0 })
	}
	ours := has(c.ours)
	for _, g := range c.ours { // all targets are in both
		entry := line{name: targetName(g.p), color: g.color, glyph: disc, pointsOnly: c.pointsOnly}
		if !ours {
			entry.glyph, entry.dashes = ring, dashed
		}
		l = append(l, entry)
	}
	if has(c.published) {
		if ours {
			l = append(l, line{name: "measured", color: quiet, glyph: disc, pointsOnly: c.pointsOnly})
		}
		l = append(l, line{name: "published", color: quiet, glyph: ring, dashes: dashed, pointsOnly: c.pointsOnly})
	}
	return l
}
