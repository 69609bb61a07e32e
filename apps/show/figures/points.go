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

	"tessera/internal/lists"
	"tessera/metrics"
)

// Point contains the metrics of one model.
type Point struct {
	Label  string         // name of the model in a figure
	P      float64        // target of the mean activation; NaN if the model has no such penalty
	Beta   float64        // weight of that penalty; NaN if there is none
	Values metrics.Values // values by the names of `eval --json`
	Split  string         // measured images: test (also ""), validation, train or all
	Noun   string         // of a measured sample: image (also ""), or sample
	First  []string       // metrics that figures of the model show first

	Deviation metrics.Values // standard deviations over the seeds; empty for a single one
}

// ErrNoPoints is the error for a figure without points to draw: no run has the metrics of its axes.
var ErrNoPoints = errors.New("no points to draw")

// metric reads one number of a point; NaN, which is not drawn, if the point does not have this number.
type metric struct {
	axis
	of     func(Point) float64
	name   string // name in errors
	higher bool   // a larger number is better
}

// cost returns the number of a point, negated if larger is better.
func (m metric) cost(p Point) float64 {
	if m.higher {
		return -m.of(p)
	}
	return m.of(p)
}

// deviation returns the standard deviation of the number of a point over the seeds, 0 for a single one.
func (m metric) deviation(p Point) float64 {
	d, _ := p.Deviation.Number(m.name)
	return d
}

// Metrics of figures, with the study's axes.
var (
	mseMetric   = metric{axis: axis{log: true}, of: numberOf("mse"), name: "mse"} // its axis does not name the measured images; see mseOf
	hoyerMetric = metric{axis: axis{label: "mean Hoyer sparsity of codes", max: 1}, of: numberOf("hoyer"), name: "hoyer"}
	maxMetric   = metric{axis: axis{label: "max-approximation error", log: true}, of: numberOf("max_approx"), name: "max_approx"}
	recMetric   = metric{axis: axis{label: "error to reconstructions", log: true}, of: numberOf("max_approx_reconstructed")}
	betaMetric  = metric{axis: axis{label: "weight β", log: true}, of: func(p Point) float64 { return p.Beta }}
)

// mseOf returns the metric mse with an axis label that names the measured images.
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
		m.label = "mse of " + first + " " + cmp.Or(list[0].Noun, "image") + "s"
	}
	return m
}

func numberOf(name string) func(Point) float64 {
	return func(p Point) float64 { return p.Values.OrNaN(name) }
}

// group contains the points with one target, in the order of the figure, and their colour.
type group struct {
	p      float64
	color  color.Color
	points []Point
}

// grouped returns the points by target, in increasing order, points without a target last. targets are all targets of the
// figure, so that a target has the same colour in measured and published points.
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

// drawn separates the points that a panel can show from the labels of the others.
func (p panel) drawn(points []Point, x, y metric) (shown []Point, omitted []string) {
	for _, at := range points {
		if p.x.shows(x.of(at)) && p.y.shows(y.of(at)) {
			shown = append(shown, at)
		} else {
			omitted = append(omitted, at.Label)
		}
	}
	return shown, omitted
}

// figure returns a figure of one panel.
func (p panel) figure(names legend, height int, omitted []string) (*Figure, error) {
	f, err := panels([][]panel{{p}}, names, height)
	if err == nil {
		f.Omitted = omitted
	}
	return f, err
}

// xys returns two metrics of points as coordinates.
func xys(points []Point, x, y metric) plotter.XYs {
	out := make(plotter.XYs, len(points))
	for i, p := range points {
		out[i] = plotter.XY{X: x.of(p), Y: y.of(p)}
	}
	return out
}

// comparison contains the measured and the published points, by target.
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

// lines draws metric y over x; published points are drawn below measured ones.
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

// legend returns a legend of the colours and, if both kinds of points exist, the two styles.
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

// Curves draws four metrics over the weight of the sparsity penalty, one line for each target p: the error of
// reconstruction, the sparsity of codes, and the errors of max-approximation to dilated originals and to dilated
// reconstructions. Published points, see [PublishedCurves], are dashed; either set may be empty.
func Curves(ours, published []Point) (*Figure, error) {
	c, err := compare(ours, published, false)
	if err != nil {
		return nil, err
	}
	one := func(title string, y metric) panel {
		return panel{title: title, x: betaMetric.axis, y: y.axis, lines: c.lines(betaMetric, y)}
	}
	return panels([][]panel{
		{one("(a) reconstruction", mseOf(ours, published)), one("(b) sparsity of codes", hoyerMetric)},
		{one("(c) max-approximation of dilated originals", maxMetric), one("(d) max-approximation of dilated reconstructions", recMetric)},
	}, c.legend(), 390)
}

// HoyerScatter draws the error of max-approximation against the sparsity of codes, one colour for each target p. Measured
// models are labelled if their colour does not identify them: without a target, or if several measured models have the same
// target and no published points are drawn.
func HoyerScatter(ours, published []Point) (*Figure, error) {
	return scatter(ours, published, hoyerMetric)
}

// MSEScatter draws the error of max-approximation against the reconstruction error, one colour for each target p. Measured
// models are labelled if their colour does not identify them: without a target, or if several measured models have the same
// target and no published points are drawn.
func MSEScatter(ours, published []Point) (*Figure, error) {
	return scatter(ours, published, mseOf(ours, published))
}

// scatter draws the points that have both metrics; it is an error if no measured one has.
func scatter(ours, published []Point, x metric) (*Figure, error) {
	p := panel{x: x.axis, y: maxMetric.axis}
	drawn, omitted := p.drawn(ours, x, maxMetric)
	if len(drawn) == 0 && len(ours) > 0 {
		return nil, fmt.Errorf("%w with %s and %s", ErrNoPoints, x.name, maxMetric.name)
	}
	c, err := compare(drawn, published, true)
	if err != nil {
		return nil, err
	}
	p.lines = c.lines(x, maxMetric)
	texts := labels{points: xys(slices.Concat(drawn, published), x, maxMetric)}
	for _, g := range c.ours {
		identified := !math.IsNaN(g.p) && (len(published) > 0 || len(g.points) == 1) // by its colour
		if !identified {
			for _, at := range g.points {
				texts.names = append(texts.names, label{at: xys([]Point{at}, x, maxMetric)[0], text: at.Label, color: ink})
			}
		}
	}
	p.extra = append(p.extra, texts)
	return p.figure(c.legend(), 620, omitted)
}

// Pareto draws max-approximation error against reconstruction error; the lower left corner is best. Every point is labelled.
// The figure has the measured points, the published points (see [PublishedTables]) and the Pareto front of both. Points that
// lack one of the two metrics are omitted.
func Pareto(ours, published []Point) (*Figure, error) {
	return pareto(ours, published, mseOf(ours, published), maxMetric)
}

// ParetoOf draws one metric against another, with labelled points and the Pareto front for the directions in which the metrics
// improve. An unknown metric, and a metric without a better direction, are errors. Points that lack one of the two metrics are
// omitted.
func ParetoOf(x, y string, points []Point) (*Figure, error) {
	var of [2]metric
	both := lists.Only(points, func(p Point) bool { return !math.IsNaN(numberOf(x)(p)) && !math.IsNaN(numberOf(y)(p)) })
	for i, name := range []string{x, y} {
		m, ok := metrics.MeasureOf(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("unknown metric %q", name)
		case m.Better == metrics.Neither:
			return nil, fmt.Errorf("%s has no front: neither a larger nor a smaller one is better", name)
		}
		of[i] = metric{axis: pointAxis(name, both), of: numberOf(name), name: name, higher: m.Better == metrics.Higher}
	}
	return pareto(points, nil, of[0], of[1])
}

// pareto draws y against x.
func pareto(ours, published []Point, x, y metric) (*Figure, error) {
	p := panel{x: x.near(ours, published), y: y.near(ours, published)}
	var names legend
	var texts labels
	var omitted []string
	for _, set := range []struct {
		points []Point
		look   line
		text   color.Color
	}{
		{published, line{name: "published", color: quiet, dashes: dashed, glyph: ring}, quiet},
		{ours, line{name: "measured", color: palette[0], glyph: disc}, ink},
	} {
		var shown []Point
		if shown, omitted = p.drawn(set.points, x, y); len(shown) == 0 {
			continue
		}
		points, edge := set.look, set.look
		points.points, points.pointsOnly = xys(shown, x, y), true
		edge.points, edge.glyph, edge.step = xys(front(shown, x, y), x, y), nil, true
		bars := line{name: "± standard deviation over the seeds", points: points.points, color: quiet, pointsOnly: true,
			bars: lists.Map(shown, y.deviation), across: lists.Map(shown, x.deviation)}
		p.lines = append(p.lines, edge, bars, points) // the front would cover bars along it
		texts.lines = append(texts.lines, edge)
		names = append(names, set.look)
		if segments := p.segments(bars); len(segments) > 0 {
			names = append(names, line{name: bars.name, color: bars.color})
			texts.lines = append(texts.lines, lists.Map(segments, func(s plotter.XYs) line { return line{points: s} })...)
		}
		for i, at := range shown {
			texts.names = append(texts.names, label{at: points.points[i], text: at.Label, color: set.text})
		}
	}
	if len(texts.names) == 0 {
		return nil, fmt.Errorf("%w with %s and %s", ErrNoPoints, x.name, y.name)
	}
	slices.Reverse(texts.names) // ours find their places first
	p.extra = append(p.extra, texts)
	return p.figure(names, 700, omitted) // of ours, the last set
}

// fewDecades is the ratio of the largest to the smallest value below which a logarithmic axis, which ends at round values, would have
// few ticks, and points in one corner.
const fewDecades = 3

// near returns the axis of the metric for some points: linear, with their range, if a logarithmic one suits them badly.
func (m metric) near(points ...[]Point) axis {
	a := m.axis
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range slices.Concat(points...) {
		if v := m.of(p); a.shows(v) {
			deviation := m.deviation(p)
			low, high = min(low, v-deviation), max(high, v+deviation)
		}
	}
	if a.log && low < high && high < fewDecades*low {
		a.log = false
		a.widen(low, high)
	}
	return a
}

// front returns the Pareto front of two metrics, the best x first: no other point is better in one of the two and at least as
// good in the other one. Of points that are equal in both metrics, one is included; points that lack a metric are omitted.
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

// SweptLine contains settings of a sweep, usually settings that differ only in the swept value.
type SweptLine struct {
	Name   string // name of the line; "" if it is the only one
	Points []SweptPoint
	Apart  bool // the points are not connected, because they differ in more than the swept value
}

// Several reports whether the line has two different values.
func (l SweptLine) Several() bool {
	return slices.ContainsFunc(l.Points, func(p SweptPoint) bool { return p.X != l.Points[0].X })
}

// SweptPoint is one setting.
type SweptPoint struct {
	X         float64        // the swept value
	Mean      metrics.Values // means over the seeds
	Deviation metrics.Values // empty for a single seed
	Split     string         // measured images, as in [Point]
	Noun      string         // of a measured sample, as in [Point]
}

// mostSwept is the number of distinct line styles.
const mostSwept = 14

// logRatio is the ratio of the largest to the smallest value above which an axis is logarithmic, if all values are positive.
const logRatio = 8

// Swept draws some metrics over a swept value: means over the seeds with bars of one standard deviation. Settings of a line
// are connected in the order of their values. A line is omitted from the panels of metrics that it lacks. Swept returns
// [ErrNoPoints] if there is nothing to draw. Fewer than two values, more than 14 lines and non-finite values are errors, too.
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
		return nil, fmt.Errorf("%d lines over %s, want at most %d, the number of distinct line styles", len(lines), x, mostSwept)
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

// line returns the points that have a metric, in the order of their values.
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

// sweptLegend returns a legend with the names of the lines, or an empty one for a single line.
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
	mostMarks = 8     // number of values that are marked on the axis, if their labels do not touch
	letter    = 0.025 // maximum width of a digit, as a fraction of the width of a panel
	space     = 0.05  // margin at both ends, as a fraction of the range of the data
)

// sweptAxis returns the axis of the swept value.
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

// apart reports whether the labels of sorted values would not touch each other on the axis.
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

// widen sets the range of a linear axis to [low, high] with a margin on both sides. An axis of values >= 0 does not begin below 0.
func (a *axis) widen(low, high float64) {
	a.min, a.max = low-space*(high-low), high+space*(high-low)
	if low >= 0 {
		a.min = max(a.min, 0)
	}
}

// metricAxis returns the axis of a metric for the given lines.
func metricAxis(name string, lines []SweptLine) axis {
	var points []Point
	for _, l := range lines {
		for _, p := range l.Points {
			points = append(points, Point{Split: p.Split, Noun: p.Noun, Values: p.Mean, Deviation: p.Deviation})
		}
	}
	return pointAxis(name, points)
}

// pointAxis returns the axis of a metric for the given points.
func pointAxis(name string, points []Point) axis {
	var low, means, high []float64
	var measured []Point
	for _, p := range points {
		if mean, ok := p.Values.Number(name); ok {
			deviation, _ := p.Deviation.Number(name)
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
