package data

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"tessera/internal/atomicfile"
	"tessera/internal/engine/kernel"
)

type imageFormat struct {
	name       string
	extensions []string
	is         func(start []byte) bool
	header     func(io.Reader) (image.Config, error)
	decode     func(io.Reader) (image.Image, error)

	orientation func(start []byte) int // returns the EXIF orientation, 1 to 8; nil if all are upright, 1
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// imageFormats lists the image formats that can be read. The format is detected from the content of a file.
var imageFormats = []imageFormat{
	{"PNG", []string{".png"}, begins(pngMagic), png.DecodeConfig, png.Decode, nil},
	{"JPEG", []string{".jpg", ".jpeg"}, begins("\xff\xd8\xff"), jpeg.DecodeConfig, jpeg.Decode, orientation},
	{"GIF", []string{".gif"}, begins("GIF8"), gif.DecodeConfig, firstFrame, nil},
	{"BMP", []string{".bmp"}, isBMP, bmp.DecodeConfig, bmp.Decode, nil},
	{"TIFF", []string{".tif", ".tiff"}, isTIFF, tiff.DecodeConfig, tiff.Decode, tiffOrientation},
	{"WebP", []string{".webp"}, isWebP, webpHeader, webp.Decode, nil},
}

func begins(magic string) func([]byte) bool {
	return func(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }
}

// isBMP also checks the reserved bytes, because a text file may also begin with BM.
func isBMP(start []byte) bool {
	return len(start) >= 10 && string(start[:2]) == "BM" && bytes.Equal(start[6:10], make([]byte, 4))
}

func isTIFF(start []byte) bool {
	return bytes.HasPrefix(start, []byte("II*\x00")) || bytes.HasPrefix(start, []byte("MM\x00*"))
}

func isWebP(start []byte) bool {
	return len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP"
}

func formatOf(start []byte) *imageFormat {
	for i := range imageFormats {
		if imageFormats[i].is(start) {
			return &imageFormats[i]
		}
	}
	return nil
}

// mostDecoded is the maximum total size in bytes of the images that are decoded at the same time, and therefore of each image.
// The header of a small file can declare any size.
const mostDecoded = 1 << 30

// isDeep reports whether the channels of an image have 16 bits.
func isDeep(m color.Model) bool {
	return m == color.Gray16Model || m == color.RGBA64Model || m == color.NRGBA64Model
}

// errDeep is the error for an image of 16 bits whose pixels would be written as bytes.
var errDeep = errors.New("the image has 16 bits per channel")

// imageHead is the number of bytes at the beginning of a file that are searched for its format and orientation: the EXIF
// segment, of at most 64 KiB, is one of the first segments of a JPEG file.
const imageHead = 1 << 18

type imageFile struct {
	io.ReaderAt
	path        string // "" for a file in memory
	length      int64
	format      *imageFormat
	orientation int
	size        Size // from the header, after rotation by the orientation
	deep        bool // the channels have 16 bits
	coloured    bool // the pixels may have colours
}

// readImageHeader reads the header of an image file of length bytes.
func readImageHeader(r io.ReaderAt, path string, length int64) (*imageFile, error) {
	start := make([]byte, min(length, imageHead))
	if _, err := r.ReadAt(start, 0); err != nil && err != io.EOF {
		return nil, err
	}
	f := &imageFile{ReaderAt: r, path: path, length: length, format: formatOf(start)}
	if f.format == nil && len(start) == 0 {
		return nil, io.ErrUnexpectedEOF
	} else if f.format == nil {
		return nil, errors.New("is no PNG, JPEG, GIF, BMP, TIFF or WebP image, whatever its name")
	}
	config, err := f.format.header(f.reader())
	if err != nil {
		return nil, f.failed(err)
	}
	f.orientation, f.size = 1, Size{config.Height, config.Width}
	if f.format.orientation != nil {
		f.orientation = f.format.orientation(start)
	}
	if f.orientation >= 5 {
		f.size = Size{config.Width, config.Height}
	}
	f.deep, f.coloured = isDeep(config.ColorModel), config.ColorModel != color.GrayModel && config.ColorModel != color.Gray16Model
	return f, nil
}

// openImage opens an image file, passes it to do with its header, and closes it.
func openImage(path string, do func(f *imageFile) error) error {
	file, length, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	f, err := readImageHeader(file, path, length)
	if err == nil {
		err = f.bounded()
	}
	if err == nil {
		err = do(f)
	}
	return err
}

// reader returns a reader of the file from its beginning. A TIFF file has offsets, which its decoder follows in a reader with random
// access: of any other reader it would buffer everything before an offset, however large.
func (f *imageFile) reader() io.Reader {
	r := io.NewSectionReader(f, 0, f.length)
	if f.format.name == "TIFF" {
		return r
	}
	return bufio.NewReader(r)
}

// depth returns the number of bytes per pixel: at least 4, because rotating an image or converting its colours needs a copy
// in RGBA.
func (f *imageFile) depth() int64 {
	if f.deep {
		return 8
	}
	return 4
}

// decoded returns the size of the decoded image in bytes.
func (f *imageFile) decoded() int64 { return f.depth() * int64(f.size.Height) * int64(f.size.Width) }

// bounded returns an error for sizes for which the decoder would need too much memory.
func (f *imageFile) bounded() error {
	h, w := int64(f.size.Height), int64(f.size.Width)
	switch {
	case h < 1 || w < 1:
		return fmt.Errorf("the header says %dx%d (height x width)", h, w)
	case h > mostDecoded/f.depth()/w:
		return &Error{Path: f.path, Problem: fmt.Sprintf("the header says %dx%d (height x width), more than %d pixels of %d bytes", h, w, mostDecoded/f.depth(), f.depth()),
			Hint: "cut the image into smaller ones, or save it with 8 bits per channel"}
	case f.format.name == "WebP" && h*w>>16 > f.length: // no compression stores 65,536 pixels in a byte
		return io.ErrUnexpectedEOF
	case f.format.name == "BMP" && h*w/8 > f.length: // it is not compressed
		return io.ErrUnexpectedEOF
	}
	return nil
}

// imageHeader reads the header of an image file, which is closed again.
func imageHeader(path string) (header *imageFile, err error) {
	err = openImage(path, func(f *imageFile) error {
		header = f
		return nil
	})
	return header, err
}

// imageHeaders reads the headers of image files; nil for those that cannot be read.
func imageHeaders(ctx context.Context, paths []string) ([]*imageFile, error) {
	files := make([]*imageFile, len(paths))
	return files, eachImage(ctx, paths, func(i int) (err error) {
		files[i], err = imageHeader(paths[i])
		return err
	})
}

// use decodes the image and passes it to do, as it is stored. It waits while the images that are being decoded take too much memory.
func (f *imageFile) use(do func(m image.Image) error) error {
	if err := decoding.Acquire(context.Background(), f.decoded()); err != nil {
		return err
	}
	defer decoding.Release(f.decoded())
	m, err := f.format.decode(f.reader())
	if err != nil {
		return f.failed(err)
	}
	return do(m)
}

// useImage is like use, for a file.
func useImage(path string, do func(m image.Image) error) error {
	return openImage(path, func(f *imageFile) error { return f.use(do) })
}

// failed returns the error of a decoder for users. For pixels of a kind that no decoder reads, such as floats in TIFF, it names the way out.
func (f *imageFile) failed(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if f.path == "" || !strings.Contains(err.Error(), "unsupported") {
		return err
	}
	name := filepath.Base(filepath.Dir(f.path))
	if name == "." || name == ".." || name == "/" {
		name = "pictures"
	}
	return &Error{Path: f.path, Problem: "has pixels of a kind that is not read: " + err.Error(), Hint: fmt.Sprintf("save the pictures as an array, and name %[1]s.npy as the data set: "+
		`python3 -c "import glob, numpy, PIL.Image; numpy.save('%[1]s.npy', [numpy.asarray(PIL.Image.open(p)) for p in sorted(glob.glob('%[2]s/*%[3]s'))])"`,
		inLine(name), inLine(filepath.ToSlash(filepath.Dir(f.path))), inLine(filepath.Ext(f.path)))}
}

// decoding limits the bytes of the images that are decoded at the same time.
var decoding = semaphore.NewWeighted(mostDecoded)

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

// flat returns an image without transparency, blended over white unless black is set.
func flat(m image.Image, black bool) image.Image {
	if o, ok := m.(interface{ Opaque() bool }); !ok || o.Opaque() {
		return m
	}
	out, under := canvas(m, m.Bounds()), image.White
	if black {
		under = image.Black
	}
	draw.Draw(out, out.Bounds(), under, image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), m, m.Bounds().Min, draw.Over)
	return out
}

// copyDeep writes an image as floats in [0,1], grey or red, green, blue: those of 16 bits are divided by 65535, others by 255.
func copyDeep(dst []float32, m image.Image, colour bool) {
	if !isDeep(m.ColorModel()) {
		pixels := make([]byte, len(dst))
		copyPixels(pixels, m, colour)
		kernel.Float32().FromBytes(dst, pixels)
		return
	}
	at, bounds := 0, m.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			if c := m.At(x, y); colour {
				r, g, b, _ := c.RGBA()
				dst[at], dst[at+1], dst[at+2] = float32(r)/65535, float32(g)/65535, float32(b)/65535
				at += 3
			} else {
				dst[at] = float32(color.Gray16Model.Convert(c).(color.Gray16).Y) / 65535
				at++
			}
		}
	}
}

// copyPixels writes an image of 8 bits without transparency as bytes, grey or red, green, blue. Grey is 0.299 R + 0.587 G + 0.114 B.
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

// orientationTag is the EXIF tag with the rotation for display: cameras store a photo as the sensor recorded it. No other tag
// is needed, and libraries for EXIF are large or no longer maintained, so this file reads the tag.
//
// Source: Exif 2.32 (CIPA DC-008), 4.6.4: tag 0x0112 of the first directory, values 1 to 8.
const orientationTag = 0x0112

// orientation returns the EXIF orientation of a JPEG file from its first bytes; 1 (upright) if there is none.
func orientation(b []byte) int {
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		marker, size := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		if marker == 0xda || size < 2 || at+2+size > len(b) { // the image begins, or the header is cut
			return 1
		}
		segment := b[at+4 : at+2+size]
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return tiffOrientation(tiff)
		}
		at += 2 + size
	}
	return 1
}

// tiffOrientation reads the tag from the first directory of a TIFF header.
func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int(order.Uint32(b[4:]))
	if at < 8 || at+2 > len(b) {
		return 1
	}
	n := int(order.Uint16(b[at:]))
	for i := range n {
		entry := at + 2 + 12*i
		if entry+12 > len(b) {
			return 1
		}
		if order.Uint16(b[entry:]) == orientationTag {
			if v := int(order.Uint16(b[entry+8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

// mostPages is the maximum number of images of a file that are counted: those of a damaged one may follow each other in a circle.
const mostPages = 1 << 16

// pages returns the number of images in a file, of which the first is read; 1 for a file that cannot be read. Small copies of an image (the tag
// NewSubfileType of TIFF) and masks are not counted.
func pages(path string) (n int) {
	_ = openImage(path, func(f *imageFile) error { // what is wrong with it is an error of its decoder
		switch f.format.name {
		case "TIFF":
			n = f.tiffPages()
		case "GIF":
			n = frames(bufio.NewReader(f.reader()))
		}
		return nil
	})
	return max(n, 1)
}

// tiffPages counts the directories of a TIFF file. Source: TIFF 6.0, section 2 (Adobe, 1992).
func (f *imageFile) tiffPages() (n int) {
	var head [8]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(head[4:]))
	for seen := 0; at > 0 && seen < mostPages; seen++ {
		if _, err := f.ReadAt(head[:2], at); err != nil {
			return n
		}
		entries := make([]byte, 12*int(order.Uint16(head[:]))+4)
		if _, err := f.ReadAt(entries, at+2); err != nil {
			return n
		}
		last, whole := len(entries)-4, true
		for e := 0; e < last; e += 12 {
			if order.Uint16(entries[e:]) == 254 && order.Uint32(entries[e+8:])&5 != 0 {
				whole = false
			}
		}
		if at = int64(order.Uint32(entries[last:])); whole {
			n++
		}
	}
	return n
}

// frames counts the images of a GIF file. Source: GIF89a (CompuServe, 1990).
func frames(r *bufio.Reader) (n int) {
	skip := func(size int) bool { _, err := r.Discard(size); return err == nil }
	table := func(flags byte) int { return int(flags>>7) * 3 << (flags&7 + 1) }
	head, err := r.Peek(13)
	if err != nil || !skip(13+table(head[10])) {
		return 0
	}
	for n < mostPages {
		switch kind, _ := r.ReadByte(); kind {
		case 0x21: // an extension with its label
			if !skip(1) {
				return n
			}
		case 0x2c:
			of, err := r.Peek(9)
			if err != nil || !skip(9+table(of[8])+1) {
				return n
			}
			n++
		default:
			return n
		}
		for size := byte(1); size > 0; { // blocks of data
			if size, err = r.ReadByte(); err != nil || !skip(int(size)) {
				return n
			}
		}
	}
	return n
}

// canvas returns an empty image for pixels of another one, with 16 bits per channel if that one has them.
func canvas(of image.Image, r image.Rectangle) draw.RGBA64Image {
	if isDeep(of.ColorModel()) {
		return image.NewRGBA64(r)
	}
	return image.NewRGBA(r)
}

// upright returns an image without transparency, rotated by its orientation.
func upright(m image.Image, orientation int) image.Image {
	if orientation == 1 {
		return m
	}
	source := m.Bounds()
	size := turned(source.Size(), orientation)
	right, down := mirrored(orientation)
	out := canvas(m, image.Rectangle{Max: size})
	w, h := source.Dx()-1, source.Dy()-1
	for y := range size.Y {
		for x := range size.X {
			fx, fy := x, y
			if orientation >= 5 { // rows become columns
				fx, fy = y, x
			}
			if right {
				fx = w - fx
			}
			if down {
				fy = h - fy
			}
			out.Set(x, y, m.At(source.Min.X+fx, source.Min.Y+fy))
		}
	}
	return out
}

// mirrored reports whether the columns and the rows of an image with this orientation are read from the right and from below.
func mirrored(orientation int) (right, down bool) {
	switch orientation {
	case 2, 3, 7, 8:
		right = true
	}
	switch orientation {
	case 3, 4, 6, 7:
		down = true
	}
	return right, down
}

// encodePNG writes an image with 8 bits per channel, or with 16 if it is deep. Values are clipped to [0,1]; NaN gives 0.
func encodePNG(w io.Writer, shape []int, values []float32, deep bool) error {
	var img draw.Image
	rect, colour := image.Rect(0, 0, shape[1], shape[0]), len(shape) == 3 && shape[2] == 3
	switch {
	case deep && colour:
		img = image.NewNRGBA64(rect)
	case deep:
		img = image.NewGray16(rect)
	case colour:
		img = image.NewNRGBA(rect)
	default:
		img = image.NewGray(rect)
	}
	level := func(v float32) uint16 {
		if deep {
			return uint16(stepOf(v, 65535))
		}
		return 257 * uint16(stepOf(v, 255))
	}
	for i := range shape[0] * shape[1] {
		c := color.NRGBA64{A: 65535}
		if colour {
			c.R, c.G, c.B = level(values[3*i]), level(values[3*i+1]), level(values[3*i+2])
		} else {
			c.R = level(values[i])
			c.G, c.B = c.R, c.R
		}
		img.Set(i%shape[1], i/shape[1], c)
	}
	return png.Encode(w, img)
}

// mostOfName is the maximum number of characters of a name that becomes that of a file.
const mostOfName = 60

// pngNames returns a file name for each of n images: their numbers, or names without the extension of a picture, with signs that are not safe
// in a file name replaced. A name that occurred before, in capitals or not, is followed by its number.
func pngNames(n int, names []string) []string {
	digits := max(5, len(strconv.Itoa(n-1)))
	files, seen := make([]string, n), make(map[string]bool, n)
	for i := range files {
		number := fmt.Sprintf("%0*d", digits, i)
		if names == nil {
			files[i] = number + ".png"
			continue
		}
		name := names[i]
		if (pictures{}).reads(name) {
			name = strings.TrimSuffix(name, filepath.Ext(name))
		}
		letters := []rune(strings.Trim(strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._- ", r) {
				return r
			}
			return '-'
		}, name), ".- "))
		name = cmp.Or(string(letters[:min(mostOfName, len(letters))]), number)
		for seen[strings.ToLower(name)] {
			name += "-" + number
		}
		seen[strings.ToLower(name)], files[i] = true, name+".png"
	}
	return files
}

// writePNGs writes images into a folder, under [pngNames]. The folder is complete or does not exist. An existing folder that is not empty is an error, because old and new
// images would be mixed.
func writePNGs(folder string, shape []int, values []float32, about Rows) error {
	if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return &os.PathError{Op: "write images to", Path: folder, Err: errors.New("the folder is not empty")}
	}
	size, _ := product(shape)
	return atomicfile.WriteFolder(folder, func(folder string) error {
		for i, name := range pngNames(len(values)/size, about.Names) {
			one := func(w io.Writer) error { return encodePNG(w, shape, values[i*size:(i+1)*size], about.Deep) }
			if err := (atomicfile.OS{}).WriteFile(filepath.Join(folder, name), one); err != nil {
				return err
			}
		}
		return nil
	})
}

// ErrNoPicture is the error for a file that is not a PNG, JPEG, GIF, BMP, TIFF or WebP image.
var ErrNoPicture = errors.New("picture: got no PNG, JPEG, GIF, BMP, TIFF or WebP image")

// DecodePicture decodes an image file and returns its pixels in [0,1] as the data set like reads them: its size, transparency and depth apply,
// those of [ReadRows] with other data sets. shape is (height, width) in grey, or (height, width, 3) in red, green and blue. Before it decodes pixels it passes
// the memory that this takes at most to reserve, nil for no limit, because the header of a small file can declare any size, and returns its error. For other files it
// returns [ErrNoPicture].
func DecodePicture(file []byte, shape []int, like Source, reserve func(bytes int64) error) ([]float32, error) {
	if !pictured(shape) {
		return nil, fmt.Errorf("picture: images of shape %v are not pictures: want (height, width) or (height, width, 3)", shape)
	}
	format := formatOf(file)
	if format == nil {
		return nil, ErrNoPicture
	}
	f, err := readImageHeader(bytes.NewReader(file), "", int64(len(file)))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoPicture, format.name, err)
	}
	if err := f.bounded(); err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	l, _ := likeOf(like)
	p, want := l.r.pictures(), Size{shape[0], shape[1]}
	if p.size == (Size{}) && f.size != want {
		return nil, fmt.Errorf("picture: got %dx%d, want %dx%d (height x width), because the data set of the model has no key size; resize it", f.size.Height, f.size.Width, shape[0], shape[1])
	}
	size, err := product(shape)
	if err == nil && reserve != nil {
		err = reserve(2 * f.decoded()) // one copy is flat or upright
	}
	if err != nil {
		return nil, err
	}
	dst := make([]float32, size)
	err = p.decode(f, shape, func(m image.Image) error {
		copyDeep(dst, m, len(shape) == 3)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("picture: %s: %w", format.name, err)
	}
	return dst, nil
}

// WritePNG writes one image of the given shape as a PNG file: values are clipped to [0,1] and multiplied by 255.
func WritePNG(w io.Writer, shape []int, values []float32) error {
	if size, err := product(shape); !pictured(shape) || err != nil || size != len(values) {
		return fmt.Errorf("picture: got %d values of shape %v, want an image (height, width) or (height, width, 3)", len(values), shape)
	}
	if slices.Contains(shape, 0) {
		return errors.New("picture: the image has no pixels")
	}
	return encodePNG(w, shape, values, false)
}

// pictured reports whether images of this shape can be written as image files.
func pictured(shape []int) bool { return len(shape) == 2 || len(shape) == 3 && shape[2] == 3 }
