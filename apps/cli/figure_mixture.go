package cli

import (
	"tessera"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/train"
)

// drawMixture draws the components of a mixture on the samples on which it is measured.
func drawMixture(w *figureCommand) (f *figures.Figure, err error) {
	err = w.each(func(label string, r *tessera.Run) error {
		m := figures.Mixed{Components: r.Centred().Components(), Shape: r.Shape()}
		if m.Components == nil {
			return usagef("figure mixture: %s is no mixture: want a run of kind \"gmm\" or \"bmm\"", label)
		}
		sample, err := r.Sample(w.ctx, data.TestSplit)
		if err != nil {
			return err
		}
		m.Split = string(sample.Split)
		if sample.Split == data.AllSplit {
			w.note("%s: drawn with %s", label, allSamples)
		}
		shift, _ := sample.Images.Scaling().Split()
		if m.Samples = sample.Images.Centred(shift); m.Samples == nil {
			m.Samples = sample.Images.Raw()
		}
		if m.Codes, err = r.Centred().Encode(m.Samples); err != nil {
			return err
		}
		if m.Names, err = r.ValueNames(w.ctx); err != nil {
			m.Names = nil // the file has changed
		}
		if m.Epochs, err = train.ReadHistory(r.Path); err != nil {
			return err
		}
		f, err = figures.Mixture(m)
		return err
	})
	return f, err
}
