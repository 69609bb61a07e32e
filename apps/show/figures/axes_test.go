package figures

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"tessera/internal/expect"
)

func TestTicksAreRoundNumbersWithinTheAxis(t *testing.T) {
	for _, c := range []struct {
		log         bool
		least, most float64
		want        string
	}{
		{false, 0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{false, -1, 1, "-1.0 -0.5 0.0 0.5 1.0"},
		{false, 0, 60, "0 10 20 30 40 50 60"},
		{false, 0.0003, 0.0011, "0.0004 0.0006 0.0008 0.0010"},
		{true, 1e-4, 0.5, "0.0001 0.001 0.01 0.1"},
		{true, 0.008, 0.09, "0.01 0.02 0.05"},
		{true, 0.01, 0.04, "0.01 0.02 0.03 0.04"},
		{true, 0.0005, 0.002, "0.0005 0.0008 0.001 0.002"},
		{true, 0.6, 0.7, "0.6 0.7"},
		{true, 1e-6, 1e-3, "1e-06 1e-05 0.0001 0.001"},
	} {
		marks := linearTicks{}.Ticks(c.least, c.most)
		if c.log {
			marks = logTicks{}.Ticks(c.least, c.most)
		}
		var texts []string
		for _, m := range marks {
			if m.Label != "" {
				texts = append(texts, m.Label)
			}
			if slack := 1e-9 * c.most; m.Value < c.least-slack || m.Value > c.most+slack {
				t.Errorf("from %v to %v: a tick at %v", c.least, c.most, m.Value)
			}
		}
		expect.Equal(t, strings.Join(texts, " "), c.want, "from", c.least, "to", c.most)
	}
}

func TestWhatIsCountedHasTicksAtWholeNumbers(t *testing.T) {
	for most, want := range map[float64]int{1: 2, 2: 3, 5: 6, 60: 7} {
		if got := (linearTicks{whole: true}).Ticks(0, most); len(got) != want || got[1].Value != math.Round(got[1].Value) {
			t.Errorf("from 0 to %v: %v", most, got)
		}
	}
}

func TestLogarithmicAxesEndAroundTheirData(t *testing.T) {
	for _, v := range []float64{1e-7, 0.00098, 0.01, 0.0867, 0.1, 0.9999, 1, 5, 18.04, 123456} {
		low, high := floorLog(v), ceilLog(v)
		if low > v*(1+1e-9) || high < v*(1-1e-9) || low < v/2*(1-1e-9) || high > v*2*(1+1e-9) {
			t.Errorf("%v is between %v and %v", v, low, high)
		}
	}
}

func TestNoPointOfTheFrontIsBeatenAndAllOthersAre(t *testing.T) {
	var points []Point
	for i := range 300 {
		_, a := math.Modf(float64(i) * math.Phi)
		_, b := math.Modf(float64(i) * math.Sqrt2)
		points = append(points, Point{Values: numbers("mse", math.Round(20*a)+1, "max_approx", math.Round(20*b*b)+1)})
	}
	complete := len(points)
	points = append(points, Point{Values: numbers("max_approx", 0.1)}, Point{Values: numbers("mse", 0.1)}, Point{})
	mse, approx := mseMetric.of, maxMetric.of
	beats := func(a, b Point) bool {
		return mse(a) <= mse(b) && approx(a) <= approx(b) && (mse(a) < mse(b) || approx(a) < approx(b))
	}
	front := front(points, mseMetric, maxMetric)
	for _, p := range points[:complete] {
		beaten := slices.ContainsFunc(points, func(q Point) bool { return beats(q, p) })
		on := slices.ContainsFunc(front, func(q Point) bool { return mse(q) == mse(p) && approx(q) == approx(p) })
		if beaten == on {
			t.Errorf("(%v, %v): beaten %v, on the front %v", mse(p), approx(p), beaten, on)
		}
	}
	if !slices.IsSortedFunc(front, func(a, b Point) int { return int(mse(a) - mse(b)) }) {
		t.Error("the front is not in order")
	}
}

// Two settings that differ little are spread over a linear axis; on a logarithmic one from 0.2 to 0.3 they were in a corner.
func TestAxesOfAParetoFrontSuitTheirPoints(t *testing.T) {
	of := func(values ...float64) (points []Point) {
		for _, v := range values {
			points = append(points, Point{Values: numbers("mse", v)})
		}
		return append(points, Point{})
	}
	a := mseMetric.near(of(0.2029, 0.2071), nil)
	if width := 0.2071 - 0.2029; a.log || a.min > 0.2029 || a.max < 0.2071 || a.max-a.min > 1.2*width {
		t.Errorf("got %+v, want a linear axis near the points", a)
	}
	for _, points := range [][]Point{of(0.007, 0.05), of(0.2), of(), of(0, 0.2)} {
		if a := mseMetric.near(points); !reflect.DeepEqual(a, mseMetric.axis) {
			t.Errorf("%v: got %+v, want the axis of the metric", points, a)
		}
	}
}

func TestNamesFindFreePlaces(t *testing.T) {
	area := vg.Rectangle{Max: vg.Point{X: 300, Y: 200}}
	size := vg.Point{X: 60, Y: 8}
	var taken []vg.Rectangle
	for i := range 12 { // a cluster near a corner
		at := vg.Point{X: 20 + vg.Length(i%4)*6, Y: 20 + vg.Length(i/4)*6}
		taken = append(taken, boxAround(at, 2))
	}
	points := len(taken)
	for i := range points {
		at := taken[i].Min.Add(vg.Point{X: 2, Y: 2})
		box, _ := freePlace(area, taken, at, size)
		for j, other := range taken {
			if overlap(box, other) > 0 {
				t.Errorf("name %d hides number %d", i, j)
			}
		}
		if outside(box, area) > 0 {
			t.Errorf("name %d is cut", i)
		}
		taken = append(taken, box)
	}
}

func TestLegendsBreakLines(t *testing.T) {
	var l legend
	for range 20 {
		l = append(l, line{name: "a name of some length"})
	}
	places, rows := l.places(dots(rowWidth))
	if rows < 3 || places[19].row != rows-1 {
		t.Fatalf("%d rows, the last entry in row %d", rows, places[19].row)
	}
	for i, p := range places {
		if right := p.x + thumbnail + 4 + textStyle(labelSize).Width(l[i].name); right > dots(rowWidth) {
			t.Errorf("entry %d ends at %v", i, right)
		}
	}
	if l.height(rowWidth) <= l[:1].height(rowWidth) {
		t.Error("more rows are not higher")
	}
}
