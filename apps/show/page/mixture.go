package page

import (
	"context"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/internal/train"
	"tessera/internal/volume"
)

// mixture draws the components of a mixture; nil for another model, and for samples of one value.
func (v *view) mixture(path string) ([]doc.Block, error) {
	m := figures.Mixed{Samples: v.images, Codes: v.codes32, Shape: v.run.Shape(), Components: v.coder.Components(), Split: string(v.sample.Split)}
	if m.Components == nil || volume.Of(m.Shape) < 2 {
		return nil, nil
	}
	m.Names = show.ValueNames(context.Background(), v.run)
	m.Epochs, _ = train.ReadHistory(path) // the page says what is wrong with it
	f, err := figures.Mixture(m)
	if err != nil {
		return nil, err
	}
	return section("Mixture", "Every sample has the colour of its most probable component; the ellipses of a normal component are one and two standard deviations from its mean.", f), nil
}
