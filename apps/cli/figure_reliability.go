package cli

import (
	"tessera"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// reliabilityBins is the number of bins of the metric ece.
const reliabilityBins = 15

// drawReliability draws the reliability of every head that predicts classes, on the measured samples. For calibrated heads it also
// draws the reliability before the calibration.
func drawReliability(w *figureCommand) (*figures.Figure, error) {
	var list []figures.Reliable
	err := w.each(func(label string, r *tessera.Run) error {
		heads := r.ClassHeads()
		if len(heads) == 0 {
			return usagef("figure reliability: %s predicts no classes", label)
		}
		split := w.measures(label, r)
		for _, head := range heads {
			of := label
			if len(heads) > 1 {
				of += ", " + head
			}
			logits, labels, err := refit.Logits(w.ctx, r, split, head)
			if err != nil {
				return err
			}
			one := figures.Reliable{Label: of}
			if c := r.Calibration(head); c != nil {
				if c.Split == string(split) {
					w.note("%s: measured on the samples to which its calibration was fitted", of)
				}
				raw := figures.Reliable{Label: of + " before", Raw: true}
				before, err := w.rawLogits(r.Path, split, head)
				if err != nil {
					return err
				}
				raw.Bins, raw.ECE = posthoc.Reliability(before, labels, reliabilityBins)
				list = append(list, raw)
				one.Label += ", " + c.String()
			}
			one.Bins, one.ECE = posthoc.Reliability(logits, labels, reliabilityBins)
			list = append(list, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return figures.Reliability(list...)
}

// rawLogits returns the logits of a head before its calibration.
func (w *figureCommand) rawLogits(run string, split data.Split, head string) ([]float32, error) {
	options := w.options
	options.Raw = true
	r, err := tessera.Open(run, options)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	logits, _, err := refit.Logits(w.ctx, r, split, head)
	return logits, err
}
