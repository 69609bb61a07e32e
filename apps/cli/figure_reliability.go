package cli

import (
	"tessera"
	"tessera/apps/show/figures"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// reliabilityBins is the number of bins of the metric ece.
const reliabilityBins = 15

// drawReliability draws the reliability of every head that predicts classes, on the measured samples. For calibrated heads it also
// draws the reliability before the calibration.
func drawReliability(w *figureCommand) (*figures.Figure, error) {
	var list []figures.Reliable
	err := w.heads(func(h shownHead) error {
		logits, labels, err := refit.Logits(w.ctx, h.run, h.split, h.name)
		if err != nil {
			return err
		}
		one := figures.Reliable{Label: h.label + h.own}
		if c := h.run.Calibration(h.name); c != nil {
			if c.Split == string(h.split) {
				w.note("%s: measured on the samples to which its calibration was fitted", one.Label)
			}
			raw := figures.Reliable{Label: one.Label + " before", Raw: true}
			before, err := w.rawLogits(h)
			if err != nil {
				return err
			}
			raw.Bins, raw.ECE = posthoc.Reliability(before, labels, reliabilityBins)
			list = append(list, raw)
			one.Label += ", " + c.String()
		}
		one.Bins, one.ECE = posthoc.Reliability(logits, labels, reliabilityBins)
		list = append(list, one)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures.Reliability(list...)
}

// rawLogits returns the logits of a head before its calibration.
func (w *figureCommand) rawLogits(h shownHead) ([]float32, error) {
	options := w.options
	options.Raw = true
	r, err := tessera.Open(h.run.Path, options)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	logits, _, err := refit.Logits(w.ctx, r, h.split, h.name)
	return logits, err
}
