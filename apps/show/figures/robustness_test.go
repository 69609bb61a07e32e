package figures

import (
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"tessera/internal/expect"
)

// Wilson's interval of an accuracy of 1 ends at 1: its bar does not leave the range of accuracies.
func TestBarsOfIntervalsEndWhereTheyEnd(t *testing.T) {
	p, drawn := panel{}, plot.New()
	p.addBars(drawn, line{points: plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 0.5}}, ends: [][2]float64{{0.93, 1}, {0.4, 0.6}}, color: ink})
	expect.Equal(t, drawn.Y.Min, 0.4, "bars from")
	expect.Equal(t, drawn.Y.Max, 1, "bars from")
	drawn = plot.New()
	p.addBars(drawn, line{points: plotter.XYs{{X: 0, Y: 1}}, bars: []float64{0.5}, color: ink})
	expect.Equal(t, drawn.Y.Min, 0.5, "bars from")
	expect.Equal(t, drawn.Y.Max, 1.5, "bars from")
}
