package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"path/filepath"
	"slices"

	"tessera/parallel/team"
)

// pictures says how image files become images.
type pictures struct {
	channels int
	size     Size   // zero: as the files are, which must have one size
	resize   string // how they are brought to that size
	only     string // the one extension that is read, "" for those of all formats
	flat     bool   // sub-folders of class folders are left out
}

// rows reads a folder; want is the shape of an image that the caller needs, nil for any.
func (p pictures) rows(ctx context.Context, folder string, want []int) (*Rows, error) {
	l, err := p.list(folder)
	if err != nil {
		return nil, err
	}
	images, _, err := p.read(ctx, l.paths, l.labels, want)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(l.paths))
	for i, path := range l.paths {
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return nil, err
		}
		names[i] = filepath.ToSlash(name)
	}
	return &Rows{Images: images, Names: names, Classes: l.classes, Notes: p.notes(folder, l)}, nil
}

// row reads one file.
func (p pictures) row(ctx context.Context, path string, want []int) (*Rows, error) {
	images, _, err := p.read(ctx, []string{path}, nil, want)
	if err != nil {
		return nil, err
	}
	return &Rows{Images: images, Names: []string{filepath.Base(path)}}, nil
}

// shape returns the shape of the image that a file becomes, from its header.
func (p pictures) shape(path string) ([]int, error) {
	size := p.size
	if size == (Size{}) {
		var err error
		if size, err = imageSize(path); err != nil {
			return nil, err
		}
	}
	if p.channels == 1 {
		return []int{size.Height, size.Width}, nil
	}
	return []int{size.Height, size.Width, p.channels}, nil
}

// read decodes files into images of one shape and hashes them.
func (p pictures) read(ctx context.Context, paths []string, labels []int, want []int) (*Images, string, error) {
	shape, err := p.shape(paths[0])
	if err != nil {
		return nil, "", badFile("", paths[0], err)
	}
	if err := fits(paths[0], len(paths), shape, want); err != nil {
		return nil, "", err
	}
	if err := p.sameSizes(ctx, paths, shape); err != nil {
		return nil, "", err
	}
	size, err := product(shape)
	if err == nil {
		_, err = product([]int{size, len(paths)})
	}
	if err != nil {
		return nil, "", badFile("", paths[0], err)
	}
	pixels := make([]byte, size*len(paths))
	err = eachImage(ctx, paths, func(i int) error { return p.decode(pixels[i*size:(i+1)*size], paths[i], shape) })
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(pixels)
	images, err := NewBytes(shape, pixels, labels)
	return images, hex.EncodeToString(sum[:]), err
}

// sameSizes refuses files of another size than shape, unless they are resized. All headers are checked before memory is taken, so
// that a wrong size in one file does not determine the memory for all images.
func (p pictures) sameSizes(ctx context.Context, paths []string, shape []int) error {
	if p.size != (Size{}) {
		return nil
	}
	first := Size{shape[0], shape[1]}
	return eachImage(ctx, paths, func(i int) error {
		got, err := imageSize(paths[i])
		if err == nil && got != first {
			err = &Error{Path: paths[i], Problem: fmt.Sprintf("the image is %dx%d (height x width), the first one is %dx%d",
				got.Height, got.Width, first.Height, first.Width), Hint: p.sizeHint(first)}
		}
		return err
	})
}

// sizeHint says what to write for files of different sizes.
func (p pictures) sizeHint(first Size) string {
	return fmt.Sprintf(`all images of a set must have one size: write size = [%d, %d] (height, width) in the dataset table to bring them to it, with resize = "crop", "pad" or "stretch"`,
		first.Height, first.Width)
}

// eachImage does something with every file and returns the first error by name, however the work was spread.
func eachImage(ctx context.Context, paths []string, do func(i int) error) error {
	problems := make([]error, len(paths))
	team.For(len(paths), 16, func(from, to int) {
		for i := from; i < to; i++ {
			if problems[i] = ctx.Err(); problems[i] == nil {
				problems[i] = do(i)
			}
		}
	})
	for i, err := range problems {
		if err != nil {
			return badFile("", paths[i], err)
		}
	}
	return nil
}

// decode reads one file into dst, an image of that shape.
func (p pictures) decode(dst []byte, path string, shape []int) error {
	decoded, err := decodeImage(path)
	if err != nil {
		return err
	}
	to := image.Pt(shape[1], shape[0])
	if p.size != (Size{}) && decoded.Bounds().Size() != to {
		decoded = resized(decoded, to, p.resize)
	}
	if got := decoded.Bounds().Size(); got != to { // its header said another size
		return fmt.Errorf("the image is %dx%d (height x width), its header says %dx%d", got.Y, got.X, to.Y, to.X)
	}
	copyPixels(dst, decoded, len(shape) == 3)
	return nil
}

// Size is `size = n`, n rows and n columns, or `size = [height, width]`, in pixels. The zero value is no size.
type Size struct{ Height, Width int }

// mostSide bounds the sides of a size.
const mostSide = 1 << 14

// FromTOML sets s from a TOML value.
func (s *Size) FromTOML(value any) error {
	sides := []any{value, value}
	if list, ok := value.([]any); ok {
		sides = list
	}
	wrong := fmt.Errorf("got %v, want a number of pixels, or [height, width], from 1 to %d; 0 keeps the size of the files", value, mostSide)
	if value == int64(0) {
		*s = Size{}
		return nil
	}
	if len(sides) != 2 {
		return wrong
	}
	for i, into := range []*int{&s.Height, &s.Width} {
		n, ok := sides[i].(int64)
		if !ok || n < 1 || n > mostSide {
			return wrong
		}
		*into = int(n)
	}
	return nil
}

// TOML returns the value that [Size.FromTOML] reads back.
func (s Size) TOML() any {
	if s == (Size{}) {
		return 0
	}
	return []int{s.Height, s.Width}
}

// The values of [Folders.Resize].
var resizes = []string{"crop", "pad", "stretch"}

// isResize reports whether a way of resizing is known.
func isResize(name string) bool { return slices.Contains(resizes, name) }
