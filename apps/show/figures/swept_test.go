package figures

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"tessera/internal/expect"
	"tessera/internal/lists"
	"tessera/metrics"
	"tessera/posthoc"
)

// sweptLines returns two lines with error bars, of which one lacks a metric, and points of a random search.
func sweptLines() []SweptLine {
	line := func(name string, apart bool, scale float64) SweptLine {
		l := SweptLine{Name: name, Apart: apart}
		for _, units := range []float64{64, 16, 256} {
			l.Points = append(l.Points, SweptPoint{X: units, Split: "validation",
				Mean: numbers("mse", scale/units, "l0", units/3*scale), Deviation: numbers("mse", 0.2*scale/units)})
		}
		return l
	}
	lines := []SweptLine{line("adam", false, 1), line("sgd", false, 2), line("random", true, 3)}
	lines[0].Points[0].Mean = numbers("mse", 0.02, "l0", 30, "accuracy", 0.8)
	return lines
}

func TestAxesOfASweepFollowTheirValues(t *testing.T) {
	over := func(values ...float64) axis {
		var l SweptLine
		for _, v := range values {
			l.Points = append(l.Points, SweptPoint{X: v})
		}
		return sweptAxis("x", []SweptLine{l})
	}
	for _, c := range []struct {
		of    axis
		log   bool
		marks int
	}{
		{over(4, 8, 16, 32), true, 4}, {over(0.1, 0.2, 0.3), false, 3}, {over(0, 1, 100), false, 0}, {over(-1, 8), false, 2},
		{over(0.000123456, 0.000223456, 0.000323456, 0.000423456), false, 4}, {over(1, 2, 3, 4, 5, 6, 7, 8, 9), true, 0},
		{over(0.00491658, 0.00967023, 0.0678747), true, 0}, {over(0.001, 0.00464159, 0.0215443, 0.1), true, 4},
	} {
		expect.Equal(t, c.of.log, c.log, c.of)
		expect.Equal(t, len(c.of.marks), c.marks, c.of)
	}
	if y := metricAxis("mse", sweptLines()); y.label != "mse of validation images" || !y.log {
		t.Errorf("got %+v", y)
	}
	if y := metricAxis("accuracy", sweptLines()); y.label != "accuracy" || y.log {
		t.Errorf("got %+v", y)
	}
}

func TestAMeaninglessCurveIsRefused(t *testing.T) {
	at := func(x ...float64) SweptLine {
		var l SweptLine
		for _, v := range x {
			l.Points = append(l.Points, SweptPoint{X: v, Mean: numbers("mse", 1)})
		}
		return l
	}
	for want, lines := range map[string][]SweptLine{
		"has one value only": {at(3, 3)},
		"want a finite":      {at(1, math.Inf(1))},
		"15 lines":           make([]SweptLine, 0, 15),
	} {
		for len(lines) < cap(lines) {
			lines = append(lines, at(1, 2))
		}
		expect.Error(t, expect.Err(Swept("x", []string{"mse"}, lines)), want)
	}
	for _, names := range [][]string{nil, {"mse"}} {
		expect.Is(t, expect.Err(Swept("x", names, nil)), ErrNoPoints)
	}
}

func TestTheFrontOfTwoMetricsGoesWhereTheyImprove(t *testing.T) {
	point := func(label string, mse, accuracy float64) Point {
		return Point{Label: label, Values: numbers("mse", mse, "accuracy", accuracy)}
	}
	points := []Point{point("worse in both", 3, 0.7), point("accurate", 2, 0.9), point("faithful", 1, 0.8), point("as accurate", 4, 0.9)}
	low, high := metric{of: numberOf("mse")}, metric{of: numberOf("accuracy"), higher: true}
	names := lists.Map(front(points, low, high), func(p Point) string { return p.Label })
	expect.Equal(t, strings.Join(names, ", "), "faithful, accurate")
	for want, names := range map[string][2]string{"unknown metric": {"mse", "foo"}, "no front": {"mse", "kl"}, "no points to draw with mse and nll": {"mse", "nll"}} {
		expect.Error(t, expect.Err(ParetoOf(names[0], names[1], points)), want, names)
	}
	expect.NoError(t, expect.Err(ParetoOf("mse", "accuracy", points)))
}

// A front names the points that it leaves out, and its axes do not make room for them.
func TestAFrontNamesThePointsThatItOmits(t *testing.T) {
	drawn := []Point{{Label: "a", Values: numbers("mse", 0.2, "hoyer", 0.3)}, {Label: "b", Values: numbers("mse", 0.1, "hoyer", 0.4)}}
	f, err := ParetoOf("mse", "hoyer", append(drawn, Point{Label: "lacks", Values: numbers("hoyer", 0.9)}))
	expect.NoError(t, err)
	expect.Slice(t, f.Omitted, []string{"lacks"})
	without, err := ParetoOf("mse", "hoyer", drawn)
	expect.NoError(t, err)
	expect.Equal(t, svg(t, f), svg(t, without))
}

// svg returns the text of a figure.
func svg(t *testing.T, f *Figure) string {
	path := filepath.Join(t.TempDir(), "f.svg")
	expect.NoError(t, f.Save(path))
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	return string(text)
}

// The points of a sweep have bars in both directions; one seed has none.
func TestAFrontHasBarsOfTheSeeds(t *testing.T) {
	texts := func(deviation metrics.Values) string {
		f, err := ParetoOf("mse", "hoyer", []Point{{Label: "a", Values: numbers("mse", 0.2, "hoyer", 0.3), Deviation: deviation}, {Label: "b", Values: numbers("mse", 0.1, "hoyer", 0.4)}})
		expect.NoError(t, err)
		return svg(t, f)
	}
	const words = "± standard deviation over the seeds"
	both, none := texts(numbers("mse", 0.02, "hoyer", 0.03)), texts(nil)
	expect.Equal(t, strings.Contains(both, words), true)
	expect.Equal(t, strings.Contains(none, words), false)
	bars := panel{}.segments(line{points: plotter.XYs{{X: 1, Y: 2}}, bars: []float64{0.5}, across: []float64{0.25}})
	expect.Slice(t, slices.Concat(bars...), []plotter.XY{{X: 1, Y: 1.5}, {X: 1, Y: 2.5}, {X: 0.75, Y: 2}, {X: 1.25, Y: 2}})
}

// A scatter draws the runs that have both metrics; it is an error if none has.
func TestAScatterOfRunsWithoutItsMetricsIsAnError(t *testing.T) {
	lacks := Point{Label: "lacks", P: math.NaN(), Values: numbers("mse", 0.1, "hoyer", 0.5)}
	has := Point{Label: "has", P: math.NaN(), Values: numbers("mse", 0.1, "hoyer", 0.5, "max_approx", 0.2)}
	for want, draw := range map[string]func(ours, published []Point) (*Figure, error){"with hoyer and max_approx": HoyerScatter, "with mse and max_approx": MSEScatter} {
		expect.Is(t, expect.Err(draw([]Point{lacks}, PublishedCurves(false))), ErrNoPoints)
		expect.Error(t, expect.Err(draw([]Point{lacks}, nil)), want)
		f, err := draw([]Point{lacks, has}, nil)
		expect.NoError(t, err)
		expect.Slice(t, f.Omitted, []string{"lacks"})
	}
}

// A bin of few samples has a long bar.
func TestTheBinsOfAReliabilityHaveIntervals(t *testing.T) {
	text := func(samples int) string {
		f, err := Reliability(Reliable{Label: "c", Bins: []posthoc.Bin{{Samples: samples, Confidence: 0.5, Accuracy: 0.5}}})
		expect.NoError(t, err)
		return svg(t, f)
	}
	expect.Contains(t, text(2), "accuracy (bars: 95 % interval)")
	expect.Equal(t, text(2) == text(200), false, "the bars of 2 and of 200 samples are equal")
}
