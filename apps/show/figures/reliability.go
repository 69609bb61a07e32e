package figures

import (
	"errors"
	"math"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"tessera/attack"
	"tessera/internal/numeral"
	"tessera/posthoc"
)

// Reliable is a classifier with its reliability on some samples.
type Reliable struct {
	Label string
	ECE   float64
	Bins  []posthoc.Bin // bins of [posthoc.Reliability]
	Raw   bool          // the bins are those before a calibration
}

// Reliability draws the reliability diagram of classifiers, the accuracy over the confidence of samples in bins with its 95 %
// interval, next to the share of the samples in each bin. On the diagonal the confidence equals the accuracy; below it predictions are
// overconfident. Raw classifiers are dashed, in the colour of the next classifier in the list.
//
// Source: DeGroot and Fienberg, The comparison and evaluation of forecasters, 1983.
func Reliability(list ...Reliable) (*Figure, error) {
	if len(list) == 0 {
		return nil, errors.New("figures: no classifiers to draw")
	}
	diagonal := line{points: plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, color: ink, dashes: dashed}
	reliability := panel{title: "(a) reliability", x: axis{label: "confidence", max: 1}, y: axis{label: "accuracy (bars: 95 % interval)", max: 1}, lines: []line{diagonal}}
	share := panel{title: "(b) samples", x: axis{label: "confidence", max: 1}, y: axis{label: "share of the samples", max: 1}}
	var names legend
	color := 0
	for _, r := range list {
		total := 0
		for _, b := range r.Bins {
			total += b.Samples
		}
		one := line{name: r.Label + ", ece " + numeral.Float(r.ECE), color: series(color), dashes: seriesDashes(color), glyph: disc}
		if r.Raw {
			one.dashes, one.glyph = []vg.Length{3, 2}, ring
		} else {
			color++
		}
		names = append(names, one)
		other := one
		for _, b := range r.Bins {
			a := attack.AccuracyOf(int(math.Round(b.Accuracy*float64(b.Samples))), b.Samples)
			one.points, one.ends = append(one.points, plotter.XY{X: b.Confidence, Y: b.Accuracy}), append(one.ends, [2]float64{a.Low, a.High})
			other.points = append(other.points, plotter.XY{X: b.Confidence, Y: float64(b.Samples) / float64(total)})
		}
		reliability.lines, share.lines = append(reliability.lines, one), append(share.lines, other)
	}
	return panels([][]panel{{reliability, share}}, names, 390)
}
