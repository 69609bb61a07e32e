package data

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"

	"golang.org/x/image/riff"
	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// webpHeader returns the size of a WebP image. The header of an extended file has the size of a canvas, but the memory of the
// decoder follows from the size of the frame: a file in which they differ is an error.
func webpHeader(r io.Reader) (config image.Config, err error) {
	kind, chunks, err := riff.NewReader(r)
	if err != nil {
		return config, err
	}
	if kind != (riff.FourCC{'W', 'E', 'B', 'P'}) {
		return config, errors.New("is not a WebP file")
	}
	var canvas image.Config
	for {
		id, length, chunk, err := chunks.Next()
		switch {
		case err == io.EOF:
			return config, io.ErrUnexpectedEOF
		case err != nil:
			return config, err
		}
		switch id {
		case riff.FourCC{'V', 'P', '8', 'X'}:
			var b [10]byte
			if _, err := io.ReadFull(chunk, b[:]); err != nil {
				return config, err
			}
			size := func(b []byte) int { return 1 + int(b[0]) + int(b[1])<<8 + int(b[2])<<16 }
			canvas.Width, canvas.Height = size(b[4:]), size(b[7:])
			continue
		case riff.FourCC{'V', 'P', '8', ' '}:
			d := vp8.NewDecoder()
			d.Init(chunk, int(length))
			var frame vp8.FrameHeader
			frame, err = d.DecodeFrameHeader()
			config = image.Config{ColorModel: color.YCbCrModel, Width: frame.Width, Height: frame.Height}
		case riff.FourCC{'V', 'P', '8', 'L'}:
			config, err = vp8l.DecodeConfig(chunk)
		default:
			continue
		}
		if err == nil && canvas.Width > 0 && (canvas.Width != config.Width || canvas.Height != config.Height) {
			err = fmt.Errorf("its canvas is %dx%d, its frame %dx%d (height x width)", canvas.Height, canvas.Width, config.Height, config.Width)
		}
		return config, err
	}
}
