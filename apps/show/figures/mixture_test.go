package figures

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/plot/plotter"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// Every point of an ellipse has the same Mahalanobis distance from the mean.
func TestAnEllipseIsAContourOfItsDistribution(t *testing.T) {
	c := metrics.Component{Weight: 1, Mean: []float64{3, -1}, Covariance: []float64{2, 0.7, 0.7, 0.5}}
	det := c.Covariance[0]*c.Covariance[3] - c.Covariance[1]*c.Covariance[2]
	for _, deviations := range []float64{1, 2} {
		least, most := math.Inf(1), math.Inf(-1)
		for _, p := range ellipse([2][]float64{{1, 0}, {0, 1}}, c, deviations) {
			x, y := p.X-c.Mean[0], p.Y-c.Mean[1]
			q := (c.Covariance[3]*x*x - 2*c.Covariance[1]*x*y + c.Covariance[0]*y*y) / det
			if math.Abs(q-deviations*deviations) > 1e-12 {
				t.Fatalf("%g deviations: got the squared distance %g", deviations, q)
			}
			least, most = min(least, p.X), max(most, p.X)
		}
		if want := deviations * math.Sqrt(2); math.Abs(most-c.Mean[0]-want) > 1e-2 || math.Abs(c.Mean[0]-least-want) > 1e-2 {
			t.Errorf("%g deviations: from %g to %g", deviations, least, most)
		}
	}
}

func TestOnlyMixturesAreDrawnAsMixtures(t *testing.T) {
	one := metrics.Component{Weight: 1, Mean: []float64{0, 0, 0}}
	samples := []float32{1, 2, 3, 4, 5, 9, 0, 0, 1}
	expect.NoError(t, expect.Err(Mixture(Mixed{Samples: samples, Codes: []float32{1, 1, 1}, Shape: []int{3}, Components: []metrics.Component{one}})))
	for name, m := range map[string]Mixed{
		"no components": {Samples: samples, Codes: []float32{1, 1, 1}, Shape: []int{3}},
		"one value":     {Samples: samples[:3], Codes: []float32{1, 1, 1}, Shape: []int{1}, Components: []metrics.Component{one}},
		"other codes":   {Samples: samples, Codes: []float32{1}, Shape: []int{3}, Components: []metrics.Component{one}},
	} {
		expect.AnyError(t, expect.Err(Mixture(m)), name)
	}
}

// Eight components need more than the seven colours of the palette.
func TestComponentsOfOneColourHaveDifferentShapes(t *testing.T) {
	seen := map[string]int{}
	for c := range 4 * len(palette) {
		look := fmt.Sprintf("%v %T", pale(series(c)), memberGlyph(c).(small).GlyphDrawer)
		if other, known := seen[look]; known {
			t.Errorf("components %d and %d look the same: %s", other, c, look)
		}
		seen[look] = c
	}
}

// The samples lie within the panel, and the figure names them.
func TestMixturesShowAllOfTheirSamples(t *testing.T) {
	f, err := Mixture(Mixed{Samples: []float32{0, 0, 10, 5, 3, 20}, Codes: []float32{1, 1, 1}, Shape: []int{2}, Split: "test",
		Components: []metrics.Component{{Weight: 1, Mean: []float64{4, 8}, Covariance: []float64{1, 0, 0, 1}}}})
	fatal.If(t, err)
	var b bytes.Buffer
	fatal.If(t, f.writeSVG(&b))
	expect.Contains(t, b.String(), "(a) components, 3 samples (test)", "the figure does not name its samples")
	p := panel{lines: []line{{points: plotter.XYs{{X: 0, Y: 0}, {X: 10, Y: 20}}}}}
	if p.pad(); !(p.x.min < 0 && p.x.max > 10 && p.y.min < 0 && p.y.max > 20) {
		t.Errorf("got the axes %+v and %+v", p.x, p.y)
	}
}
