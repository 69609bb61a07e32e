package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"golang.org/x/image/bmp"
	scaling "golang.org/x/image/draw"
)

// imageFormat is a format of image files.
type imageFormat struct {
	name       string
	extensions []string
	is         func(start []byte) bool
	header     func(io.Reader) (image.Config, error)
	decode     func(io.Reader) (image.Image, error)
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// imageFormats are those that are read. The content of a file decides.
var imageFormats = []imageFormat{
	{"PNG", []string{".png"}, begins(pngMagic), png.DecodeConfig, png.Decode},
	{"JPEG", []string{".jpg", ".jpeg"}, begins("\xff\xd8\xff"), jpeg.DecodeConfig, jpeg.Decode},
	{"GIF", []string{".gif"}, begins("GIF8"), gif.DecodeConfig, firstFrame},
	{"BMP", []string{".bmp"}, isBMP, bmp.DecodeConfig, bmp.Decode},
}

func begins(magic string) func([]byte) bool {
	return func(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }
}

// isBMP also checks the reserved bytes: a text may begin with BM.
func isBMP(start []byte) bool {
	return len(start) >= 10 && string(start[:2]) == "BM" && bytes.Equal(start[6:10], make([]byte, 4))
}

// isImage reports whether a file that starts so is an image.
func isImage(start []byte) bool { return formatOf(start) != nil }

func formatOf(start []byte) *imageFormat {
	for i := range imageFormats {
		if imageFormats[i].is(start) {
			return &imageFormats[i]
		}
	}
	return nil
}

// mostPixels bounds one file: decoded, 16-bit colours take 8 bytes a pixel, 2 GiB. A few bytes can claim any size.
const mostPixels = 1 << 28

// imageHead is how many bytes of a file are looked at for its format and orientation: the EXIF segment, of at most 64 KiB, is among
// the first of a JPEG file.
const imageHead = 1 << 18

// imageFile is an image file that is open.
type imageFile struct {
	*os.File
	format      *imageFormat
	orientation int
	size        Size // as its header says, turned by the orientation
}

// openImage opens a file and reads its header.
func openImage(path string) (f *imageFile, err error) {
	file, length, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	start := make([]byte, min(length, imageHead))
	if _, err := file.ReadAt(start, 0); err != nil && err != io.EOF {
		return nil, err
	}
	f = &imageFile{File: file, format: formatOf(start), orientation: 1}
	if f.format == nil {
		if len(start) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, errors.New("is no PNG, JPEG, GIF or BMP image, whatever its name")
	}
	if f.format.name == "JPEG" {
		f.orientation = orientation(start)
	}
	config, err := f.format.header(bufio.NewReader(file))
	if err != nil {
		return nil, cut(err)
	}
	f.size = Size{config.Height, config.Width}
	if err := f.bounded(length); err != nil {
		return nil, err
	}
	if f.orientation >= 5 {
		f.size = Size{config.Width, config.Height}
	}
	_, err = file.Seek(0, io.SeekStart)
	return f, err
}

// bounded refuses sizes that the decoder should take no memory for.
func (f *imageFile) bounded(length int64) error {
	h, w := f.size.Height, f.size.Width
	switch {
	case h < 1 || w < 1:
		return fmt.Errorf("the header says %dx%d (height x width)", h, w)
	case h > mostPixels/w:
		return &Error{Path: f.Name(), Problem: fmt.Sprintf("the header says %dx%d (height x width), more than %d pixels", h, w, mostPixels),
			Hint: "cut the image into smaller ones"}
	case f.format.name == "BMP" && int64(h)*int64(w)/8 > length: // it is not compressed
		return io.ErrUnexpectedEOF
	}
	return nil
}

// imageSize returns the size of an image from the header of its file, turned by its EXIF orientation.
func imageSize(path string) (Size, error) {
	f, err := openImage(path)
	if err != nil {
		return Size{}, err
	}
	defer f.Close()
	return f.size, nil
}

// decodeImage reads a file and turns the image by its EXIF orientation.
func decodeImage(path string) (image.Image, error) {
	f, err := openImage(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	decoded, err := f.format.decode(bufio.NewReader(f))
	if err != nil {
		return nil, cut(err)
	}
	return upright(decoded, f.orientation), nil
}

// firstFrame decodes the first image of a GIF file, which may be smaller than the canvas.
func firstFrame(r io.Reader) (image.Image, error) {
	var start bytes.Buffer
	config, err := gif.DecodeConfig(io.TeeReader(r, &start))
	if err != nil {
		return nil, err
	}
	frame, err := gif.Decode(io.MultiReader(&start, r))
	canvas := image.Rect(0, 0, config.Width, config.Height)
	if err != nil || frame.Bounds() == canvas {
		return frame, err
	}
	whole := image.NewNRGBA(canvas)
	draw.Draw(whole, frame.Bounds(), frame, frame.Bounds().Min, draw.Src)
	return whole, nil
}

// resized brings an image to a size by linear interpolation (a triangle filter, as wide as a pixel of the result where that is
// larger):
//
//	crop     the largest part in the middle that has the proportions of the size
//	pad      all of the image, as large as it fits, in the middle of black
//	stretch  all of the image, out of proportion
func resized(m image.Image, size image.Point, how string) image.Image {
	to, from := image.Rectangle{Max: size}, m.Bounds()
	s := from.Size()
	wide := int64(s.X)*int64(size.Y) > int64(s.Y)*int64(size.X)
	switch {
	case how == "stretch":
	case how == "crop" && wide:
		from = middle(from, image.Pt(share(s.Y, size.X, size.Y), s.Y))
	case how == "crop":
		from = middle(from, image.Pt(s.X, share(s.X, size.Y, size.X)))
	case wide:
		to = middle(to, image.Pt(size.X, share(size.X, s.Y, s.X)))
	default:
		to = middle(to, image.Pt(share(size.Y, s.X, s.Y), size.Y))
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	scaling.BiLinear.Scale(out, to, m, from, draw.Src, nil)
	return out
}

// share is n a / b, rounded, at least 1.
func share(n, a, b int) int {
	return int(max(1, (2*int64(n)*int64(a)+int64(b))/(2*int64(b))))
}

// middle returns the rectangle of that size in the middle of another one.
func middle(r image.Rectangle, size image.Point) image.Rectangle {
	at := r.Min.Add(image.Pt((r.Dx()-size.X)/2, (r.Dy()-size.Y)/2))
	return image.Rectangle{Min: at, Max: at.Add(size)}
}

// copyPixels writes an image as bytes, grey or red, green, blue. Grey is 0.299 R + 0.587 G + 0.114 B; transparent pixels are
// blended over black.
func copyPixels(dst []byte, m image.Image, colour bool) {
	bounds := m.Bounds()
	size := image.Rectangle{Max: bounds.Size()}
	if !colour {
		if grey, ok := m.(*image.Gray); ok && len(grey.Pix) == len(dst) {
			copy(dst, grey.Pix)
			return
		}
		grey := &image.Gray{Pix: dst, Stride: size.Dx(), Rect: size}
		draw.Draw(grey, size, m, bounds.Min, draw.Src)
		return
	}
	rgba := image.NewRGBA(size)
	draw.Draw(rgba, size, m, bounds.Min, draw.Src)
	for i := range size.Dx() * size.Dy() {
		copy(dst[3*i:3*i+3], rgba.Pix[4*i:])
	}
}

// cut replaces an unexpected end of the file by a message that users understand.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
