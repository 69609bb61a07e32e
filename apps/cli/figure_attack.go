package cli

import (
	"fmt"
	"slices"

	"tessera"
	"tessera/apps/internal/study"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/data"
)

// drawGradients draws test images and, for each run, the gradients of the cross entropy of its head with respect to them.
func drawGradients(w *figureCommand) (*figures.Figure, error) {
	var rows []figures.ImageRow
	err := w.displays(func(d display) error {
		heads := d.run.ClassHeads()
		if len(heads) == 0 {
			return usagef("figure gradients: %s predicts no classes", d.label)
		}
		if rows == nil {
			original := d.scale(study.Originals(d.run.Shape(), d.images))
			original.Names = d.names
			original.Values, _ = d.run.ValueNames(w.ctx)
			rows = append(rows, original)
		}
		for _, head := range heads {
			if column := d.run.ClassColumn(head); column != data.LabelsColumn {
				return usagef("figure gradients: %s: the head %q predicts the column %q, not the labels", d.label, head, column)
			}
			if len(d.labels) == 0 || slices.Min(d.labels) < 0 {
				return usagef("figure gradients: %s: the class of an image is not known; choose others by --images", d.label)
			}
			g, err := runs.Gradients(d.run, head, d.images, d.labels)
			if err != nil {
				return err
			}
			caption := d.label
			if len(heads) > 1 {
				caption += ", " + head
			}
			row := figures.ImageRow{Caption: study.Caption(caption, "gradients of the cross entropy; "+accuracyName(d.run), d.measured.Values, accuracyOf(heads, head)), Shape: d.run.Shape(), Images: g, Tone: figures.Signed, Names: d.names}
			row.Values, _ = d.run.ValueNames(w.ctx)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return drawRows(rows, figures.HeatMaps)
}

// accuracyOf is the name of the accuracy of a head.
func accuracyOf(heads []string, head string) string {
	if len(heads) > 1 {
		return head + ".accuracy"
	}
	return "accuracy"
}

// accuracyName is what the accuracy of a run is: agreement where its labels are the predictions of another run.
func accuracyName(r *tessera.Run) string {
	if other := data.PredictorOf(r.Model.Dataset.Source); other != "" {
		return "agreement with " + labelOf(other)
	}
	return "accuracy"
}

// drawRobustness attacks the heads of runs in balls of growing radii.
func drawRobustness(w *figureCommand) (*figures.Figure, error) {
	if len(w.Epsilons) > 0 && len(w.Norms) > 1 {
		return nil, usagef("--epsilon: radii are of one norm; add --norm %s or --norm %s", attack.LInf, attack.L2)
	}
	var list []figures.Robust
	var trials []attack.Trial
	for _, norm := range w.Norms {
		radii := slices.Clone(w.Epsilons)
		if len(radii) == 0 {
			radii = norm.Radii()
		}
		slices.Sort(radii)
		for _, epsilon := range slices.Compact(radii) {
			t := attack.Trial{Attack: &attack.PGD{Steps: w.Steps, StopEarly: true}, Ball: attack.Ball{Norm: norm, Epsilon: epsilon}}
			if err := t.Check(); err != nil {
				return nil, flagError(err)
			}
			trials = append(trials, t)
		}
	}
	err := w.heads(func(h shownHead) error {
		of := h.label + h.own
		if name := accuracyName(h.run); name != "accuracy" {
			of += " (" + name + ")"
		}
		j, err := runs.Judge(w.ctx, h.run, runs.HeadAttack{Head: h.name, Trials: trials, Limit: w.Limit})
		if err != nil {
			return fmt.Errorf("figure robustness: %s: %w", h.label, err)
		}
		for _, norm := range w.Norms {
			one := figures.Robust{Label: of, Norm: norm, Method: fmt.Sprintf("pgd, %d steps, %d images", w.Steps, j.Images), Radii: []float64{0}, Accuracy: []attack.Accuracy{j.Accuracy}}
			for _, t := range j.Trials {
				if t.Norm == one.Norm {
					one.Radii, one.Accuracy = append(one.Radii, t.Epsilon), append(one.Accuracy, t.Accuracy)
				}
			}
			list = append(list, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures.Robustness(list...)
}
