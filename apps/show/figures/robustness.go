package figures

import (
	"errors"
	"fmt"

	"gonum.org/v1/plot/plotter"

	"tessera/attack"
)

// Robust is a classifier under attack in one norm: its accuracy over the radius of the ball, ascending, 0 for clean images.
type Robust struct {
	Label    string
	Norm     attack.Norm
	Method   string // the attack in words, such as "pgd, 40 steps"
	Radii    []float64
	Accuracy []attack.Accuracy
}

// Robustness draws the accuracy of classifiers over the radius of the ball that the examples lie in, one panel for each norm, with 95 %
// intervals over images. What a classifier gives up at 0 and keeps at larger radii is the trade-off between accuracy and robustness.
//
// Source: Tsipras et al., Robustness may be at odds with accuracy, 2019.
func Robustness(list ...Robust) (*Figure, error) {
	var row []panel
	var names legend
	at := map[string]int{} // the number of a label
	for _, norm := range []attack.Norm{attack.LInf, attack.L2} {
		p := panel{x: axis{label: "epsilon"}, y: axis{label: "accuracy (bars: 95 % interval)", max: 1}}
		for _, r := range list {
			if r.Norm != norm {
				continue
			}
			if len(r.Radii) != len(r.Accuracy) {
				return nil, fmt.Errorf("figures: %s: got %d radii and %d accuracies", r.Label, len(r.Radii), len(r.Accuracy))
			}
			color, known := at[r.Label]
			if !known {
				color = len(at)
				at[r.Label] = color
			}
			one := line{name: r.Label, color: series(color), dashes: seriesDashes(color), glyph: disc}
			for i, a := range r.Accuracy {
				one.points = append(one.points, plotter.XY{X: r.Radii[i], Y: a.Value})
				one.ends = append(one.ends, [2]float64{a.Low, a.High})
			}
			if !known {
				names = append(names, one)
			}
			p.title = fmt.Sprintf("(%c) %s: %s", 'a'+len(row), norm, r.Method)
			p.lines = append(p.lines, one)
		}
		if len(p.lines) > 0 {
			row = append(row, p)
		}
	}
	if len(row) == 0 {
		return nil, errors.New("figures: no classifiers to draw")
	}
	return panels([][]panel{row}, names, 390)
}
