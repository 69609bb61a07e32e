package figures

import "math"

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

// HoyerScatter draws the error of max-approximation against the sparsity of codes, one colour for each target p. Measured models
// without a target have their names.
func HoyerScatter(ours, published []Point) (*Figure, error) {
	return scatter(ours, published, hoyerMetric)
}

// MSEScatter draws the error of max-approximation against that of reconstruction, one colour for each target p. Measured
// models without a target have their names.
func MSEScatter(ours, published []Point) (*Figure, error) {
	return scatter(ours, published, mseOf(ours, published))
}

func scatter(ours, published []Point, x metric) (*Figure, error) {
	c, err := compare(ours, published, true)
	if err != nil {
		return nil, err
	}
	p := panel{x: x.axis, y: maxMetric.axis, lines: c.lines(x, maxMetric)}
	var texts labels
	for _, at := range ours {
		if math.IsNaN(at.P) && len(p.labelled([]Point{at}, x, maxMetric)) == 1 {
			texts.names = append(texts.names, label{at: xys([]Point{at}, x, maxMetric)[0], text: at.Label, color: ink})
		}
	}
	p.extra = append(p.extra, texts)
	return panels([][]panel{{p}}, c.legend(), 620)
}
