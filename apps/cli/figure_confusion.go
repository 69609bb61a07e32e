package cli

import (
	"tessera/apps/show/figures"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// drawConfusion draws the confusion matrix of every head that predicts classes, on the measured samples.
func drawConfusion(w *figureCommand) (*figures.Figure, error) {
	var list []figures.Confused
	err := w.heads(func(h shownHead) error {
		logits, labels, err := refit.Logits(w.ctx, h.run, h.split, h.name)
		if err != nil {
			return err
		}
		names := h.run.HeadClasses(h.name)
		list = append(list, figures.Confused{Label: h.label + ", " + string(h.split) + h.own, Classes: names, Counts: posthoc.Confusion(logits, labels, len(names))})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures.Confusion(list...)
}
