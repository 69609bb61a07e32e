package data

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
)

// ErrNoPicture says that a file is none of the images that are read.
var ErrNoPicture = errors.New("picture: got no PNG, JPEG, GIF or BMP image")

// DecodePicture returns the bytes of the image in a file as one image of that shape: (height, width) in grey, by 0.299 R + 0.587 G +
// 0.114 B, or (height, width, 3) in red, green and blue. Transparency is blended over black; JPEG images are turned by their EXIF
// orientation, as those of [Folders]. A picture of another size is an error, before its pixels are decoded: a few bytes can
// claim any size. What is no image is [ErrNoPicture].
func DecodePicture(file []byte, shape []int) ([]byte, error) {
	if !pictured(shape) {
		return nil, fmt.Errorf("picture: images of shape %v are not pictures: want (height, width) or (height, width, 3)", shape)
	}
	format := formatOf(file)
	if format == nil {
		return nil, ErrNoPicture
	}
	config, err := format.header(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoPicture, format.name, cut(err))
	}
	turned := 1
	if format.name == "JPEG" {
		turned = orientation(file)
	}
	got := Size{config.Height, config.Width}
	if turned >= 5 {
		got = Size{config.Width, config.Height}
	}
	if got != (Size{shape[0], shape[1]}) {
		return nil, fmt.Errorf("picture: got %dx%d, want %dx%d (height x width); resize it", got.Height, got.Width, shape[0], shape[1])
	}
	picture, err := format.decode(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("picture: %s: %w", format.name, cut(err))
	}
	return fromPicture(upright(picture, turned), shape)
}

// fromPicture returns the bytes of a decoded picture of that shape.
func fromPicture(picture image.Image, shape []int) ([]byte, error) {
	if got := picture.Bounds(); got.Dy() != shape[0] || got.Dx() != shape[1] { // its header said another size
		return nil, fmt.Errorf("picture: got %dx%d, want %dx%d (height x width)", got.Dy(), got.Dx(), shape[0], shape[1])
	}
	size, err := product(shape)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, size)
	copyPixels(dst, picture, len(shape) == 3)
	return dst, nil
}

// WritePNG writes one image of that shape as a PNG file: values are clipped to [0,1] and multiplied by 255.
func WritePNG(w io.Writer, shape []int, values []float32) error {
	if size, err := product(shape); !pictured(shape) || err != nil || size != len(values) {
		return fmt.Errorf("picture: got %d values of shape %v, want an image (height, width) or (height, width, 3)", len(values), shape)
	}
	if slices.Contains(shape, 0) {
		return errors.New("picture: the image has no pixels")
	}
	return encodePNG(w, shape, toBytes(values))
}

// pictured reports whether images of a shape are pictures.
func pictured(shape []int) bool { return len(shape) == 2 || len(shape) == 3 && shape[2] == 3 }
