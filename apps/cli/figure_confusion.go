package cli

import (
	"tessera"
	"tessera/apps/show/figures"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// drawConfusion draws the confusion matrix of every head that predicts classes, on the measured samples.
func drawConfusion(w *figureCommand) (*figures.Figure, error) {
	var list []figures.Confused
	err := w.each(func(label string, r *tessera.Run) error {
		heads := r.ClassHeads()
		if len(heads) == 0 {
			return usagef("figure confusion: %s predicts no classes", label)
		}
		split := w.measures(label, r)
		for _, head := range heads {
			logits, labels, err := refit.Logits(w.ctx, r, split, head)
			if err != nil {
				return err
			}
			of := label + ", " + string(split)
			if len(heads) > 1 {
				of += ", " + head
			}
			names := r.HeadClasses(head)
			list = append(list, figures.Confused{Label: of, Classes: names, Counts: posthoc.Confusion(logits, labels, len(names))})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures.Confusion(list...)
}
