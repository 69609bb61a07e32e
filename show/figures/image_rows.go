package figures

import "errors"

// ImageRow is images, or vectors, under one caption: originals, reconstructions, atoms, max-approximations.
type ImageRow struct {
	Caption string
	Shape   []int     // of one image: (height, width) or (height, width, channels); (values) of a vector
	Images  []float32 // one after the other, row-major
	Columns int       // images to a line; 0 means 10
	Tone    Tone      // of images
	Names   []string  // of vectors, see [Spectra]
	Values  []string  // the names of the values of a vector; nil numbers them
}

// ImageRows draws rows of images below each other, each image magnified by a whole number without smoothing. Three
// channels are drawn as colours; other numbers of channels as the grey of their mean.
func ImageRows(rows ...ImageRow) (*Figure, error) {
	if len(rows) == 0 {
		return nil, errors.New("figures: no images to draw")
	}
	blocks := make([]block, len(rows))
	for i, row := range rows {
		columns := row.Columns
		if columns < 1 {
			columns = 10
		}
		r, n, err := newRaster(row.Shape, columns, row.Tone, row.Images, rowWidth, largest)
		if err != nil {
			return nil, err
		}
		blocks[i] = picture(row.Caption, r.image(row.Images, n))
	}
	return stack(blocks), nil
}
