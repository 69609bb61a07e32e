package page

import (
	"bytes"
	"context"
	"encoding/base64"
	"image/png"

	"tessera/apps/show/figures"
	"tessera/internal/train"
	"tessera/internal/volume"
)

// mixture draws the components of a mixture; "" for another model, and for samples of one value.
func (v *view) mixture(path string) (picture, error) {
	m := figures.Mixed{Samples: v.images, Codes: v.codes32, Shape: v.run.Shape(), Components: v.run.Components(), Split: string(v.sample.Split)}
	if m.Components == nil || volume.Of(m.Shape) < 2 {
		return "", nil
	}
	m.Names, _ = v.run.ValueNames(context.Background()) // without the file they have none
	m.Epochs, _ = train.ReadHistory(path)               // the page says what is wrong with it
	f, err := figures.Mixture(m)
	if err != nil {
		return "", err
	}
	return encoded(f), nil
}

// encoded returns a figure as a picture of a page.
func encoded(f *figures.Figure) picture {
	var b bytes.Buffer
	_ = png.Encode(&b, f.Image()) // a buffer takes everything
	return picture(base64.StdEncoding.EncodeToString(b.Bytes()))
}
