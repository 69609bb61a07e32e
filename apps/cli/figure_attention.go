package cli

import (
	"fmt"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/figures"
)

// drawAttention draws where the heads of the last layer with attention attend: in test images, or with --atoms in the images that
// use these units. Of texts it draws the tokens that attend to each other.
func drawAttention(w *figureCommand) (*figures.Figure, error) {
	var rows []figures.ImageRow
	var texts []figures.Attended
	err := w.displays(func(d display) error {
		samples := d.samples
		if len(w.Images) == 0 {
			samples = samples.First(1)
		}
		list, err := figures.AttentionOfTexts(w.ctx, d.run, samples)
		if texts = append(texts, list...); err != nil || list != nil {
			return err
		}
		names := figures.AttentionValues(d.run)
		if len(names) == 0 {
			return usagef("figure attention: %s publishes no attention over parts of its images or its tokens; the layers attention and transformer do", d.label)
		}
		images, caption := d.images, d.label+": test images"
		if len(w.Atoms) > 0 {
			all, err := d.run.Images(w.ctx)
			if err != nil {
				return err
			}
			first := all.First(figures.MostAttended)
			images, caption = first.Scaled(d.shift).Float32(), fmt.Sprintf("%s: mean images of units %s", d.label, show.Numbered(w.Atoms))
		}
		a, err := figures.AttentionOf(d.coder, names[len(names)-1], images)
		if err != nil {
			return err
		}
		if len(w.Atoms) > 0 {
			if a, err = ofUnits(d.coder, a, w.Atoms); err != nil {
				return err
			}
		}
		rows = append(rows, a.Rows(caption)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if texts != nil {
		return figures.TokenAttention(texts...)
	}
	return figures.ImageRows(rows...)
}

// ofUnits returns the attention in the images that use units.
func ofUnits(r *tessera.Coder, a *figures.Attention, units []int) (*figures.Attention, error) {
	for _, u := range units {
		if u < 0 || u >= r.Units() {
			return nil, usagef("--atoms: got %d, want 0 to %d", u, r.Units()-1)
		}
	}
	codes, err := r.Encode(a.Images)
	if err != nil {
		return nil, err
	}
	return a.OfUnits(codes, units), nil
}
