package figures

import (
	"cmp"
	"errors"

	"gonum.org/v1/plot/plotter"
	"tessera/internal/train"
)

// TrainingRun is the history of one training.
type TrainingRun struct {
	Label  string
	Epochs []train.Epoch
	Noun   string // of a sample: "image" or "sample"; "" for image
	Units  int    // of the code; 0 if unknown
}

// Training draws the loss, the error on the validation images, sparsity of codes and dead units over the epochs of runs.
func Training(runs ...TrainingRun) (*Figure, error) {
	epochs := 0
	for _, run := range runs {
		epochs += len(run.Epochs)
	}
	if epochs == 0 {
		return nil, errors.New("figures: no epochs to draw")
	}
	noun, units := "image", 5
	for _, run := range runs {
		noun, units = cmp.Or(run.Noun, noun), max(units, run.Units)
	}
	one := func(title string, y axis, name string) panel {
		p := panel{title: title, x: axis{label: "epoch", max: 1, whole: true}, y: y}
		for i, run := range runs {
			points := make(plotter.XYs, len(run.Epochs))
			for j, e := range run.Epochs {
				points[j] = plotter.XY{X: e.Epoch, Y: e.Values.OrNaN(name)}
			}
			l := line{points: points, color: series(i), dashes: seriesDashes(i)}
			if len(points) == 1 { // a line would not show
				l.glyph = disc
			}
			p.lines = append(p.lines, l)
		}
		return p
	}
	var names legend
	for i, run := range runs {
		names = append(names, line{name: run.Label, color: series(i), dashes: seriesDashes(i)})
	}
	return panels([][]panel{
		{one("(a) loss", axis{label: "mean loss of the epoch", log: true}, "loss"),
			one("(b) reconstruction", axis{label: "mse of validation " + noun + "s", log: true}, "val_mse")},
		{one("(c) sparsity of codes", axis{label: "mean Hoyer sparsity", max: 1}, "code_hoyer"),
			one("(d) dead units", axis{label: "units", max: float64(units), whole: true}, "dead_units")},
	}, names, 390)
}
