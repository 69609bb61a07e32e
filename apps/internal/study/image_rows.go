package study

import (
	"fmt"
	"io"

	"tessera/data/morph"
	"tessera/metrics"
	"tessera/show/figures"
)

// shownAtoms is the number of atoms of each model that are drawn if there are several models.
const shownAtoms = 20

// Originals are images as a row of a figure.
func Originals(shape []int, images []float32) figures.ImageRow {
	return figures.ImageRow{Caption: "originals", Shape: shape, Images: images}
}

// DilatedOriginals are dilated images as a row of a figure.
func DilatedOriginals(shape []int, images []float32) (figures.ImageRow, error) {
	dilated, err := morph.Apply(morph.Dilation, 1, images, shape)
	return figures.ImageRow{Caption: "dilated originals", Shape: shape, Images: dilated}, err
}

// Reconstructions are the reconstructions of images by a coder.
func Reconstructions(c metrics.Coder, images []float32, caption string) (figures.ImageRow, error) {
	decoded, err := through(c, c, images)
	return figures.ImageRow{Caption: caption, Shape: c.Shape(), Images: decoded}, err
}

// MaxApproximations are the reconstructions of images by a coder with dilated atoms. For a coder without atoms the error is
// [metrics.ErrNoAtoms].
func MaxApproximations(c metrics.Coder, images []float32, caption string) (figures.ImageRow, error) {
	operated, err := metrics.Dilation().Coder(c, false)
	if err != nil {
		return figures.ImageRow{}, err
	}
	if closer, ok := operated.(io.Closer); ok {
		defer closer.Close()
	}
	decoded, err := through(c, operated, images)
	return figures.ImageRow{Caption: caption, Shape: c.Shape(), Images: decoded}, err
}

// Codes are the codes that a coder gives images.
func Codes(c metrics.Coder, images []float32, caption string) (figures.CodeRow, error) {
	codes, err := c.Encode(images)
	return figures.CodeRow{Caption: caption, Units: c.Units(), Codes: codes}, err
}

// FirstAtoms are the first atoms of a coder and their number; 0 if it has no atoms.
func FirstAtoms(c metrics.Coder) (row figures.ImageRow, n int) {
	a := c.Atoms()
	if a == nil {
		return row, 0
	}
	n = min(shownAtoms, a.Count)
	return figures.ImageRow{Shape: a.Shape, Images: a.Values[:n*a.Pixels()], Tone: figures.Signed}, n
}

// Caption names a model with one of its values: "shallow: mse 0.0071". A value that is not applicable is left out.
func Caption(label, what string, of metrics.Values, name string) string {
	number, ok := of.Number(name)
	if !ok {
		return label
	}
	return fmt.Sprintf("%s: %s %#.3g", label, what, number)
}

// through encodes with one coder and decodes with another.
func through(encoder, decoder metrics.Coder, images []float32) ([]float32, error) {
	codes, err := encoder.Encode(images)
	if err != nil {
		return nil, err
	}
	return decoder.Decode(codes)
}
