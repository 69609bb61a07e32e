package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot/plotter"
)

// TrainingRun is the course of one training.
type TrainingRun struct {
	Label  string
	Epochs []TrainingEpoch
}

// TrainingEpoch is what was measured in one epoch; NaN where it was not.
type TrainingEpoch struct {
	Epoch     float64
	Loss      float64
	ValMSE    float64
	CodeHoyer float64
	DeadUnits float64
}

// ReadTraining reads the metrics.jsonl of a run. The error says which line is damaged; the file is known to the caller.
func ReadTraining(label string, r io.Reader) (TrainingRun, error) {
	run := TrainingRun{Label: label}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e struct {
			Epoch     *float64 `json:"epoch"`
			Loss      *float64 `json:"loss"`
			ValMSE    *float64 `json:"val_mse"`
			CodeHoyer *float64 `json:"code_hoyer"`
			DeadUnits *float64 `json:"dead_units"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return TrainingRun{}, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Epoch == nil {
			return TrainingRun{}, fmt.Errorf("line %d: no epoch", n)
		}
		run.Epochs = append(run.Epochs, TrainingEpoch{Epoch: *e.Epoch, Loss: orNaN(e.Loss), ValMSE: orNaN(e.ValMSE),
			CodeHoyer: orNaN(e.CodeHoyer), DeadUnits: orNaN(e.DeadUnits)})
	}
	return run, lines.Err()
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Training draws loss, error on the validation images, sparsity of codes and dead units over the epochs of runs.
func Training(runs ...TrainingRun) (*Figure, error) {
	epochs := 0
	for _, run := range runs {
		epochs += len(run.Epochs)
	}
	if epochs == 0 {
		return nil, errors.New("report: no epochs to draw")
	}
	one := func(title string, y axis, of func(TrainingEpoch) float64) panel {
		p := panel{title: title, x: axis{label: "epoch", max: 1, whole: true}, y: y}
		for i, run := range runs {
			points := make(plotter.XYs, len(run.Epochs))
			for j, e := range run.Epochs {
				points[j] = plotter.XY{X: e.Epoch, Y: of(e)}
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
		{one("(a) loss", axis{label: "mean loss of the epoch", log: true}, func(e TrainingEpoch) float64 { return e.Loss }),
			one("(b) reconstruction", axis{label: "mse of validation images", log: true}, func(e TrainingEpoch) float64 { return e.ValMSE })},
		{one("(c) sparsity of codes", axis{label: "mean Hoyer sparsity", max: 1}, func(e TrainingEpoch) float64 { return e.CodeHoyer }),
			one("(d) dead units", axis{label: "units", max: 5, whole: true}, func(e TrainingEpoch) float64 { return e.DeadUnits })},
	}, names, 390)
}
