package figures

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"tessera/internal/train"
)

// TrainingRun is the history of one training.
type TrainingRun struct {
	Label    string
	Epochs   []train.Epoch
	Noun     string // of a sample: "image" or "sample"; "" for image
	Units    int    // of the code; 0 if unknown
	Iterates bool   // its epochs are iterations
}

// courses are the panels of [Training], those of which a run has values.
var courses = []struct {
	name, title string
	y           axis
}{
	{"loss", "loss", axis{label: "mean loss of the epoch", log: true}},
	{"val_mse", "reconstruction", axis{label: "mse of validation samples", log: true}},
	{"val_accuracy", "accuracy", axis{label: "accuracy of validation samples", max: 1}},
	{"code_hoyer", "sparsity of codes", axis{label: "mean Hoyer sparsity", max: 1}},
	{"dead_units", "dead units", axis{label: "units", whole: true}},
}

// Training draws what runs measured over their epochs: the loss, on the validation images the objective, the error and the accuracy,
// sparsity of codes and dead units. What no run measured has no panel. A model whose loss falls while its dashed line, the same on the
// validation images, rises is overfitted.
func Training(runs ...TrainingRun) (*Figure, error) {
	epochs := 0
	for _, run := range runs {
		epochs += len(run.Epochs)
	}
	if epochs == 0 {
		return nil, errors.New("figures: no epochs to draw")
	}
	noun, units, unit := "image", 5, "epoch"
	if !slices.ContainsFunc(runs, func(run TrainingRun) bool { return !run.Iterates }) {
		unit = "iteration"
	}
	for _, run := range runs {
		noun, units = cmp.Or(run.Noun, noun), max(units, run.Units)
	}
	var all []panel
	for _, c := range courses {
		p := panel{title: fmt.Sprintf("(%c) %s", 'a'+len(all), c.title), x: axis{label: unit, max: 1, whole: true}, y: c.y}
		p.y.label = strings.Replace(p.y.label, "sample", noun, 1)
		if c.name == "dead_units" {
			p.y.max = float64(units)
		}
		measured := false
		for i, run := range runs {
			points := make(plotter.XYs, len(run.Epochs))
			for j, e := range run.Epochs {
				points[j] = plotter.XY{X: e.Epoch, Y: e.Values.OrNaN(c.name)}
				measured = measured || !math.IsNaN(points[j].Y)
			}
			l := line{points: points, color: series(i), dashes: seriesDashes(i)}
			if len(points) == 1 { // a line would not show
				l.glyph = disc
			}
			p.lines = append(p.lines, l)
			if points := heldOut(run); c.name == "loss" && points != nil {
				p.lines = append(p.lines, line{points: points, color: l.color, dashes: dashed, glyph: l.glyph})
				p.y.label = "mean loss; dashed: validation"
			}
		}
		if measured {
			all = append(all, p)
		}
	}
	var names legend
	for i, run := range runs {
		names = append(names, line{name: run.Label, color: series(i), dashes: seriesDashes(i)})
	}
	columns := 2 - len(all)%2 // all rows are equally long
	return panels(slices.Collect(slices.Chunk(all, columns)), names, 210+90*columns)
}

// heldOut returns the objective of a run on the validation images over its epochs: val_loss, and of a classifier without other
// terms the negative log-likelihood; nil if neither was measured.
func heldOut(run TrainingRun) plotter.XYs {
	for _, name := range []string{"val_loss", "val_nll"} {
		var points plotter.XYs
		for _, e := range run.Epochs {
			v := e.Values.OrNaN(name)
			if name == "val_nll" && e.Values.OrNaN("cross_entropy") != e.Values.OrNaN("loss") {
				v = math.NaN()
			}
			if !math.IsNaN(v) {
				points = append(points, plotter.XY{X: e.Epoch, Y: v})
			}
		}
		if points != nil {
			return points
		}
	}
	return nil
}
